#define _GNU_SOURCE
#include "deny/scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/failure.h"
#include "lib/mount_api.h"

/* More folders than any source tree has; a walk of so many takes a few seconds. */
#define FOLDERS_MAX 1000000
/* Limit where only seals can match: folders beyond it, shallow folders first, are not sealed. */
#define SEALED_FOLDERS_MAX 100000

struct waiting {
  struct waiting *next;
  const struct rule_states *states;
  char path[];
};

struct entry {
  uint64_t inode;
  int64_t offset;
  unsigned short length;
  unsigned char type;
  char name[];
};

struct walk {
  const struct scan *scan;
  struct waiting *first, *last;
  uint32_t folders;
};

static void queue(struct walk *walk, const char *path, const struct rule_states *states) {
  if ((states->denies & ~DENY_OF_SEALS) == 0 && walk->folders >= SEALED_FOLDERS_MAX) return;
  if (walk->scan->cut != NULL && walk->folders == walk->scan->folders_max) {
    *walk->scan->cut = true;
    return;
  }
  if (walk->folders++ == FOLDERS_MAX) fail_world("denied names", path, E2BIG);
  struct waiting *waiting = malloc(sizeof *waiting + strlen(path) + 1);
  if (waiting == NULL) fail_world("denied names", path, ENOMEM);
  waiting->next = NULL;
  waiting->states = states;
  strcpy(waiting->path, path);
  if (walk->first == NULL) walk->first = waiting;
  else walk->last->next = waiting;
  walk->last = waiting;
}

static unsigned char type_in(const struct stat *status) {
  if (S_ISDIR(status->st_mode)) return DT_DIR;
  return S_ISLNK(status->st_mode) ? DT_LNK : DT_REG;
}

static unsigned char type_of(int folder, const char *name, unsigned char told) {
  struct stat status;
  if (told != DT_UNKNOWN) return told;
  if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0) return DT_UNKNOWN;
  return type_in(&status);
}

/* Handles an entry of the folder `path`. Paths longer than PATH_MAX are skipped: no process can open them in
   a single call. */
static void take(struct walk *walk, int folder, const char *path, const struct rule_states *states, const char *name,
                 unsigned char told) {
  char below[PATH_MAX];
  unsigned matched, through = 0;
  const struct rule_states *further = NULL;
  unsigned char type = type_of(folder, name, told);
  if (type == DT_DIR) further = rules_step(states, name, &matched);
  else matched = rules_match(states, name);
  if (type == DT_LNK && walk->scan->link != NULL) through = rules_through(states, name);
  if (matched == 0 && further == NULL && through == 0) return;
  int length = snprintf(below, sizeof below, "%s/%s", strcmp(path, "/") == 0 ? "" : path, name);
  if (length >= (int)sizeof below) return;
  if (through != 0) walk->scan->link(below, through);
  if (matched != 0 && !walk->scan->found(below, matched)) return;
  if (further != NULL) queue(walk, below, further);
}

static void take_listed(struct walk *walk, int folder, const struct waiting *waiting) {
  static _Alignas(struct entry) char entries[32768];
  long count;
  while ((count = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0) {
    for (long at = 0; at < count;) {
      const struct entry *entry = (const void *)(entries + at);
      at += entry->length;
      if (strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0) continue;
      take(walk, folder, waiting->path, waiting->states, entry->name, entry->type);
    }
  }
}

/* Looks up literal names only: without wildcards the folder need not be listed, however large. */
static void take_literals(struct walk *walk, int folder, const struct waiting *waiting) {
  struct stat status;
  for (uint32_t i = 0; i < waiting->states->count; i++) {
    const char *name = rules_literal(waiting->states, i);
    if (name == NULL || fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0) continue;
    take(walk, folder, waiting->path, waiting->states, name, type_in(&status));
  }
}

static void visit(struct walk *walk, const struct waiting *waiting) {
  int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK;
  int folder = open_below(walk->scan->root, waiting->path, flags, WALK_NO_SYMLINKS);
  if (folder < 0) return;
  /* Watch before reading: a name that appears in between is seen twice rather than never. */
  if (walk->scan->enter(folder, waiting->path, waiting->states)) {
    if (waiting->states->listed) take_listed(walk, folder, waiting);
    else take_literals(walk, folder, waiting);
  }
  close(folder);
}

void scan_below(const struct scan *scan, const char *path, const struct rule_states *states) {
  struct walk walk = {.scan = scan};
  queue(&walk, path, states);
  while (walk.first != NULL) {
    struct waiting *waiting = walk.first;
    walk.first = waiting->next;
    visit(&walk, waiting);
    free(waiting);
  }
}
