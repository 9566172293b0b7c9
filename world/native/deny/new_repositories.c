#define _GNU_SOURCE
#include "deny/new_repositories.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "deny/denials.h"
#include "deny/late_names.h"
#include "lib/channel.h"
#include "lib/fields.h"
#include "lib/frames.h"

/* Further repositories cannot be guarded against surviving processes, so the world ends. */
#define FOLDERS_MAX 4096

static char *folders[FOLDERS_MAX];
static int count;
static bool more; /* more repositories appeared than fit */

static void tell(const char *folder) {
  uint8_t payload[FIELD_HEADER_SIZE + PATH_MAX];
  struct field_writer writer = {.data = payload, .capacity = sizeof payload};
  field_put_string(&writer, TAG_PATH, folder);
  channel_send(FRAME_BROUGHT, 0, payload, writer.length);
}

bool new_repository_is_gone(const char *folder) {
  struct stat status;
  int fd = denial_open(folder, O_PATH | O_NOFOLLOW);
  bool gone = fd < 0 || fstat(fd, &status) < 0 || !S_ISDIR(status.st_mode);
  if (fd >= 0) close(fd);
  return gone;
}

void new_repository_drop(int at) {
  free(folders[at]);
  folders[at] = folders[--count];
}

/* Drops removed folders: a test suite makes and removes thousands. */
static void drop_gone(void) {
  for (int at = count - 1; at >= 0; at--) {
    if (new_repository_is_gone(folders[at])) new_repository_drop(at);
  }
}

bool new_repository_waits(const char *folder) {
  for (int i = 0; i < count; i++) {
    if (strcmp(folders[i], folder) == 0) return true;
  }
  return false;
}

void new_repository_add(const char *folder) {
  if (new_repository_waits(folder)) return;
  if (!late_commands_run()) tell(folder);
  if (count == FOLDERS_MAX && !more) drop_gone();
  char *copy = count < FOLDERS_MAX ? strdup(folder) : NULL;
  if (copy == NULL) more = true;
  else folders[count++] = copy;
}

const char *new_repository_at(int at) {
  return at < count ? folders[at] : NULL;
}

bool new_repositories_overflowed(void) {
  return more;
}
