#ifndef SUBSTRATE_CHANGES_HELD_PLAN_H
#define SUBSTRATE_CHANGES_HELD_PLAN_H

#include <stdbool.h>

#include "changes/held_paths.h"

/* One step of a change. All that is made is made aside first, by its number; then it is put in place by renaming. */
struct step {
  char kind;           /* p put, i into the put before it, t take away, a attributes */
  const char *path;    /* below the project; no `.`, no `..`, no empty part */
  const char *source;  /* below the folder of layers; empty for `t` */
  char how;            /* p i: w with all below, a alone; a: w all attributes, t times, n none (its ctime is kept only) */
  struct sight expect; /* what must be there; of attributes a ctime of 0 means any */
  struct sight placed; /* what was put there; type 0 until it is known */
  char name[24];       /* its number */
};

/* A change in the folder `home`: its file `plan` is the journal's first page. */
struct plan {
  struct text text;
  const char *project_path, *layers_path, *stage_name;
  struct sight project_seen; /* only type and inode */
  bool keeps;                /* what is replaced is kept in `old` */
  struct step *steps;
  size_t count;
  int home, layers, project;      /* open folders */
  int stage, made, old;           /* of the staging folder; -1 until it is there */
};

/* Reads the file and opens the folders. NULL, or why not in a sentence. */
const char *plan_open(struct plan *plan, const char *home);
void plan_close(struct plan *plan);

#endif
