/* Files behind the gate's program names, to recognise hard links and copies under any name. */
#ifndef SUBSTRATE_NOTIFY_STARTS_ORIGINALS_H
#define SUBSTRATE_NOTIFY_STARTS_ORIGINALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "notify/starts/images.h"

struct original {
  char *path; /* the last component is the name */
  dev_t device;
  ino_t inode;
  off_t size;
  bool loader; /* a dynamic loader, not a name of the gate */
};

/* Cache entry: whether a file has the same bytes as an original. */
struct comparison {
  dev_t device;
  ino_t inode;
  struct timespec changed;
  uint32_t original;
  bool equal;
};

#define COMPARISONS 64

struct originals {
  struct original *list;
  size_t count, room;
  int64_t looked; /* time of the last scan, monotonic ms; 0: never */
  size_t next;    /* index of the next cache entry to evict */
  struct comparison comparisons[COMPARISONS];
};

/* Program names to look for, patterns (lib/wildcards.h) last, and additional folders to search. */
struct wanted {
  char *const *names;
  size_t count, patterns;
  char *const *folders;
  size_t folder_count;
};

/* Scans these folders and the usual program folders, at most once every five seconds. */
void originals_look(struct originals *originals, const struct wanted *wanted);
/* Iterates over the originals with the same inode or the same bytes as this file: `at` begins as 0. NULL at
   the end. */
const struct original *originals_next(struct originals *originals, const struct image *image, size_t *at);
void originals_free(struct originals *originals);

#endif
