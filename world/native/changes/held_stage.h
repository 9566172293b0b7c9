#ifndef SUBSTRATE_CHANGES_HELD_STAGE_H
#define SUBSTRATE_CHANGES_HELD_STAGE_H

#include "changes/held_plan.h"

enum verdict_kind {
  SUCCESS = 0,
  CONFLICT, /* the project differs from what the plan expects */
  FAILED,
};

/* Result of a change that may not take place. */
struct verdict {
  enum verdict_kind kind;
  const char *path, *reason;
  int error;
};

/* Makes all new files aside, in a private folder that commands cannot write, and writes their states into the journal's file `placed`.
   Changes nothing in the project. */
struct verdict stage_make(struct plan *plan);
/* Opens the staging folder of an earlier process; false: missing. */
bool stage_open(struct plan *plan);
/* Removes the staging folder; one in the project, of an earlier version, also sets the project folder's mtime back to `mtime`. -1 with
   errno. */
int stage_remove(struct plan *plan, int64_t mtime);

/* True when the present state is the expected state; attributes may differ where the plan allows. */
bool sight_matches(const struct step *step, const struct sight *now);

#endif
