/* The files behind names of programs, so that a hard link or a copy of one is known whatever it is called. */
#ifndef SUBSTRATE_NOTIFY_STARTS_ORIGINALS_H
#define SUBSTRATE_NOTIFY_STARTS_ORIGINALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "notify/starts/images.h"

struct original {
  char *path; /* its last part is the name */
  dev_t device;
  ino_t inode;
  off_t size;
  bool loader; /* a dynamic one, which is no name of the gate */
};

/* Whether a file has the bytes of an original, as it was found out. */
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
  int64_t looked; /* when, on the monotonic clock in ms; 0: never */
  size_t next;    /* of the comparisons, the one that goes next */
  struct comparison comparisons[COMPARISONS];
};

/* Programs by name, of which the last are patterns (lib/wildcards.h), and folders where they may lie. */
struct wanted {
  char *const *names;
  size_t count, patterns;
  char *const *folders;
  size_t folder_count;
};

/* Looks for them there and where systems keep programs, unless it did a moment ago. */
void originals_look(struct originals *originals, const struct wanted *wanted);
/* Walks those that this file is, or has the bytes of: `at` begins as 0. NULL: no more. */
const struct original *originals_next(struct originals *originals, const struct image *image, size_t *at);
void originals_free(struct originals *originals);

#endif
