#ifndef SUBSTRATE_CHANGES_HELD_COPY_H
#define SUBSTRATE_CHANGES_HELD_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "changes/text.h"

#define LINK_BUCKETS 8192

/* Copies of files with several names, so that the copies stay hard-linked. Initialise with zeros. */
struct links {
  int home;        /* the folder that contains all copies */
  const char *top; /* path of the current copy inside `home` */
  size_t skip;     /* length of the prefix that `top` replaces in paths given to `link_remember` */
  struct linked *buckets[LINK_BUCKETS];
};

void links_end(struct links *links);

/* A copy of trees, as by `cp -a`: keeps modes, times, links, hard links and attributes, and the owner where
   permitted. */
struct copy {
  bool layer;           /* from an upper layer: skip whiteouts, fail with EPERM on forbidden files */
  bool whole;           /* with contents; otherwise folders are made empty, private, without rows */
  struct text *rows;    /* created files: path and sight, two fields each; may be NULL */
  struct links *links;  /* files with several names met before */
};

/* Copies `name` in `from` to `as` in `to`. Rows call the copy `path`. -1 with errno. */
int copy_entry(struct copy *copy, int from, const char *name, int to, const char *as, const char *path);

/* Copies owner, mode, kept attributes and times from `source` to `to`; both may be O_PATH, neither may be a
   symlink. */
int copy_attributes(int source, int to);
/* The same, with owner, mode and times of `status`. */
int copy_attributes_as(int source, int to, const struct stat *status);
int copy_mtime(int source, int to);

#endif
