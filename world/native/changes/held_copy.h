#ifndef SUBSTRATE_CHANGES_HELD_COPY_H
#define SUBSTRATE_CHANGES_HELD_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "changes/held_text.h"

#define LINK_BUCKETS 8192

/* Files of several names that were copied already, so that the copies are one file as well. Zeroed to begin with. */
struct links {
  int home;        /* the folder that all copies lie in */
  const char *top; /* in it, where the copy that is being made begins */
  size_t skip;     /* how much of the paths of `link_remember` stands for `top` */
  struct linked *buckets[LINK_BUCKETS];
};

void links_end(struct links *links);

/* A copy of trees, as `cp -a` makes them: modes, times, links, hard links and attributes kept, the owner where we may. */
struct copy {
  bool layer;           /* from an upper layer: whiteouts are left out, and what nobody may apply is EPERM */
  bool whole;           /* with all that is below folders; else they are made empty, ours alone, and told in no row */
  struct text *rows;    /* what was made: path and sight, two fields each; may be NULL */
  struct links *links;  /* files of several names that were met before */
};

/* Makes `as` in `to` what `name` in `from` is. `path` is what rows call it. -1 with errno. */
int copy_entry(struct copy *copy, int from, const char *name, int to, const char *as, const char *path);

/* Gives `to` owner, mode, kept attributes and times of `source`; both may be O_PATH, and neither is a symlink. */
int copy_attributes(int source, int to);

#endif
