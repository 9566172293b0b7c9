#ifndef SUBSTRATE_CHANGES_HELD_STAGE_H
#define SUBSTRATE_CHANGES_HELD_STAGE_H

#include "changes/held_plan.h"

/* Why a change does not take place. */
struct verdict {
  char kind; /* 0 it does, c conflict, f failed */
  const char *path, *reason;
  int error;
};

/* Makes all that is to be put into the project aside, in one folder of it that is ours alone, and writes what was made into
   the journal's file `placed`. Changes nothing else in the project. */
struct verdict stage_make(struct plan *plan);
/* Opens what an earlier process staged; false when there is none. */
bool stage_open(struct plan *plan);
/* Removes the staging folder, which had changed when the project's own folder was modified: that is `mtime` again. -1 with
   errno. */
int stage_remove(struct plan *plan, int64_t mtime);

/* Whether what is there is what was expected; attributes need not be the same where the plan says so. */
bool sight_matches(const struct step *step, const struct sight *now);

#endif
