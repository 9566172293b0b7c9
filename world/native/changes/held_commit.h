#ifndef HELD_COMMIT_H
#define HELD_COMMIT_H

#include "changes/held_stage.h"

/* Whether everything stands as the plan expects. Changes nothing. */
struct verdict commit_check(struct plan *plan);
/* Puts everything that was staged in place, and writes `record`: from then on the change has happened. On any verdict the
   caller takes back what was done. */
struct verdict commit(struct plan *plan);
/* Takes back whatever of `commit` was done, found out by looking; also after a kill. What somebody changed meanwhile stays
   as it is, with a sentence in `notes`, and what stood there before is kept in the journal's folder. False when something
   could not be taken back: then the staging folder must stay. */
bool roll_back(struct plan *plan, struct text *notes);
/* After `commit`: keeps what was replaced, removes the staging folder. -1 with errno. */
int commit_finish(struct plan *plan);

#endif
