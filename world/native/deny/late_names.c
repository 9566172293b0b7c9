#define _GNU_SOURCE
#include "deny/late_names.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "deny/folder_links.h"
#include "deny/rules.h"
#include "lib/channel.h"
#include "lib/commands.h"
#include "lib/fields.h"
#include "lib/frames.h"

/* No tool makes so many intermediate names; further names are quarantined immediately. */
#define LATE_MAX 1024

struct late {
  char *path;
  unsigned denies;
};

static struct late names[LATE_MAX];
static int count;

bool late_commands_run(void) {
  for (const struct command *command = command_after(NULL); command != NULL; command = command_after(command)) {
    if (!command->exit_sent) return true;
  }
  return false;
}

void late_name_tell(const char *path, unsigned denies) {
  /* The link may have become the folder meanwhile. */
  if ((denies & DENY_FOLDER_LINK) != 0 && !folder_link_is_new(path)) return;
  uint8_t payload[2 * FIELD_HEADER_SIZE + 8 + PATH_MAX];
  struct field_writer writer = {.data = payload, .capacity = sizeof payload};
  field_put_string(&writer, TAG_PATH, path);
  field_put_u64(&writer, TAG_DENIES, denies & ~DENY_FOLDER_LINK);
  channel_send(FRAME_APPEARED, 0, payload, writer.length);
}

bool late_name_add(const char *path, unsigned denies) {
  for (int i = 0; i < count; i++) {
    if (strcmp(names[i].path, path) != 0) continue;
    /* The name is now denied as such, not only as a link. */
    if ((denies & DENY_FOLDER_LINK) == 0) names[i].denies = denies;
    return true;
  }
  char *copy = count < LATE_MAX ? strdup(path) : NULL;
  if (copy == NULL) {
    late_name_tell(path, denies);
    return false;
  }
  names[count++] = (struct late){copy, denies};
  return true;
}

void late_names_tell(void) {
  for (int i = 0; i < count; i++) {
    late_name_tell(names[i].path, names[i].denies);
    free(names[i].path);
  }
  count = 0;
}
