#define _GNU_SOURCE
#include "deny/closings.h"

#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "deny/denials.h"
#include "deny/rules.h"
#include "lib/clock.h"
#include "lib/credentials.h"

/* Repositories made by others at the same time. A further repository stays open: new names inside may be
   quarantined. */
#define CLOSINGS_MAX 64
/* Longest closure. A busy machine makes the folder and its settings in a few hundredths of this time. */
#define PATIENCE_MS 1000
/* A repository in the making changes all the time; a folder without settings and unchanged for longer is just
   a folder. */
#define RECENT_S 10

struct closing {
  char *folder;
  int64_t until; /* ms of CLOCK_MONOTONIC */
};

static struct closing closings[CLOSINGS_MAX];
static int count;

bool closing_is_over(const char *folder) {
  struct stat status;
  const char *name;
  uint16_t at = 0;
  bool found = false;
  int opened = denial_open(folder, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (opened < 0) return true;
  while (!found && (name = rules_next_end(DENY_ASKS, &at)) != NULL) found = fstatat(opened, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
  close(opened);
  return found;
}

bool closing_is_recent(const char *folder) {
  struct stat status;
  int opened = denial_open(folder, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (opened < 0) return false;
  bool recent = fstat(opened, &status) == 0 && time(NULL) - status.st_ctim.tv_sec <= RECENT_S;
  close(opened);
  return recent && !closing_is_over(folder);
}

void closing_begin(const char *top, const char *folder) {
  if (count == CLOSINGS_MAX) return;
  char *copy = strdup(folder);
  if (copy == NULL) return;
  if (denial_close(top, folder)) closings[count++] = (struct closing){copy, now_ms() + PATIENCE_MS};
  else free(copy);
}

static int find(const char *folder, size_t length) {
  for (int at = 0; at < count; at++) {
    if (strlen(closings[at].folder) == length && memcmp(closings[at].folder, folder, length) == 0) return at;
  }
  return -1;
}

bool closing_covers(const char *path) {
  return find(path, (size_t)(strrchr(path, '/') - path)) >= 0;
}

static void end(int at) {
  denial_open_again(closings[at].folder);
  free(closings[at].folder);
  closings[at] = closings[--count];
}

void closing_end(const char *folder) {
  int at = find(folder, strlen(folder));
  if (at >= 0) end(at);
}

int closings_check(void) {
  int64_t now = now_ms(), next = -1;
  for (int at = count - 1; at >= 0; at--) {
    int64_t left = closings[at].until - now;
    if (left > 0) {
      if (next < 0 || left < next) next = left;
      continue;
    }
    credentials_raise();
    end(at);
    credentials_lower();
  }
  return (int)next;
}
