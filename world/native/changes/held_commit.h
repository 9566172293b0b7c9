#ifndef SUBSTRATE_CHANGES_HELD_COMMIT_H
#define SUBSTRATE_CHANGES_HELD_COMMIT_H

#include "changes/held_stage.h"

/* Whether everything stands as the plan expects. Changes nothing. */
struct verdict commit_check(struct plan *plan);
/* Puts everything that was staged in place, and writes `record`: from then on the change has happened. On any verdict the
   caller takes back what was done. */
struct verdict commit(struct plan *plan);

#endif
