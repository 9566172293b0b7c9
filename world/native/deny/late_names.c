#define _GNU_SOURCE
#include "deny/late_names.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <unistd.h>

#include "deny/denials.h"
#include "deny/folder_links.h"
#include "deny/rules.h"
#include "lib/channel.h"
#include "lib/commands.h"
#include "lib/credentials.h"
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
static bool alone;

bool late_commands_run(void) {
  for (const struct command *command = command_after(NULL); command != NULL; command = command_after(command)) {
    if (!command->exit_sent) return true;
  }
  return false;
}

void late_names_be_alone(void) {
  alone = true;
}

bool late_names_alone(void) {
  return alone;
}

/* Gives a name the meaningless name that the broker gives where its quarantine is out of reach (world/linux/quarantine.ts).
   Rights stay raised: PID 1 is about to exit. */
static void move_aside(const char *path) {
  char folder[PATH_MAX], aside[64];
  uint64_t number = 0;
  const char *leaf = strrchr(path, '/') + 1;
  snprintf(folder, sizeof folder, "%.*s", (int)(leaf - path), path);
  (void)getrandom(&number, sizeof number, 0);
  snprintf(aside, sizeof aside, "substrate-denied-%016" PRIx64, number);
  credentials_raise();
  while (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0) continue;
  int place = denial_open(folder, O_PATH | O_DIRECTORY);
  if (place < 0) return;
  (void)renameat2(place, leaf, place, aside, RENAME_NOREPLACE);
  close(place);
}

void late_name_tell(const char *path, unsigned denies) {
  /* The link may have become the folder meanwhile. */
  if ((denies & DENY_FOLDER_LINK) != 0 && !folder_link_is_new(path)) return;
  if (alone) {
    /* What is sealed in place would only be judged, and stays. */
    if ((denies & DENY_JUDGED) == 0) move_aside(path);
    return;
  }
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
  /* Telling may find the broker gone: the last look then comes here again, and goes on with the same name. */
  static int at;
  for (; at < count; at++) late_name_tell(names[at].path, names[at].denies);
  while (count > 0) free(names[--count].path);
  at = 0;
}
