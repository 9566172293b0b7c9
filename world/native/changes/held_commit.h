#ifndef SUBSTRATE_CHANGES_HELD_COMMIT_H
#define SUBSTRATE_CHANGES_HELD_COMMIT_H

#include "changes/held_stage.h"

/* Checks that every step finds the state expected by the plan. Changes nothing. */
struct verdict commit_check(struct plan *plan);
/* Puts all staged files in place and writes `record`: the change has happened then. On any other verdict the
   caller rolls back. */
struct verdict commit(struct plan *plan);

#endif
