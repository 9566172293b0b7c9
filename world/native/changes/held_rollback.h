#ifndef SUBSTRATE_CHANGES_HELD_ROLLBACK_H
#define SUBSTRATE_CHANGES_HELD_ROLLBACK_H

#include "changes/held_plan.h"

/* Rolls back the completed part of `commit`, found by looking at the files, also after a kill. Files changed
   by others meanwhile stay, with a sentence in `notes`, and the earlier files are kept in the journal's
   folder. False when a step could not be rolled back: the staging folder must stay then. */
bool roll_back(struct plan *plan, struct text *notes);

#endif
