#ifndef SUBSTRATE_CHANGES_HELD_PLAN_H
#define SUBSTRATE_CHANGES_HELD_PLAN_H

#include <stdbool.h>

#include "changes/paths.h"

/* Letters of the plan on disk, as in `Step` of world/overlay/held-journal.ts. */
enum step_kind {
  STEP_PUT = 'p',
  STEP_INTO = 'i', /* a part of the preceding put */
  STEP_TAKE = 't', /* take away */
  STEP_ATTRIBUTES = 'a',
};
enum step_how {
  HOW_WHOLE = 'w',   /* with contents; all attributes */
  HOW_ALONE = 'a',   /* put: a folder without its contents */
  HOW_TIMES = 't',   /* attributes: times only */
  HOW_NOTHING = 'n', /* attributes: nothing, only the ctime is recorded */
};

/* A step of a change. New files are first made in the staging folder, under the step's number, then renamed
   into place. */
struct step {
  enum step_kind kind;
  enum step_how how;
  const char *path;    /* below the project; no `.`, no `..`, no empty component */
  const char *source;  /* below the folder of layers; empty for STEP_TAKE */
  struct sight expect; /* the required state; for attributes, ctime 0 means any */
  struct sight placed; /* the staged file's state; TYPE_NONE until known */
  char name[24];       /* the step's number */
  bool touched;        /* attributes, on a rollback: somebody else changed the content since */
};

/* A change in the folder `home`: the file `plan` is the journal's first page. */
struct plan {
  struct text text;
  const char *project_path, *layers_path, *stage_name;
  struct sight project_seen; /* only type and inode */
  bool keeps;                /* replaced files are kept in `old` */
  struct step *steps;
  size_t count;
  int home, layers, project;      /* open folders */
  int place;                      /* the folder of the staging folder; -1 until made, as are the next three */
  bool is_reachable;              /* a command may come to what is staged, where it is the one that made the repository, or a policy lets it */
  int stage, made, old;           /* the staging folder, and folders in it */
};

/* Reads the file and opens the folders. Returns NULL, or the error as a sentence. */
const char *plan_open(struct plan *plan, const char *home);
void plan_close(struct plan *plan);

#endif
