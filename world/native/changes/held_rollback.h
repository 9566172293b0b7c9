#ifndef SUBSTRATE_CHANGES_HELD_ROLLBACK_H
#define SUBSTRATE_CHANGES_HELD_ROLLBACK_H

#include "changes/held_plan.h"

/* Takes back whatever of `commit` was done, found out by looking; also after a kill. What somebody changed meanwhile stays
   as it is, with a sentence in `notes`, and what stood there before is kept in the journal's folder. False when something
   could not be taken back: then the staging folder must stay. */
bool roll_back(struct plan *plan, struct text *notes);

#endif
