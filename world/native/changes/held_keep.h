#ifndef HELD_KEEP_H
#define HELD_KEEP_H

#include "changes/held_plan.h"

/* Copies what was replaced into the journal's folder, where that is another file system and it cannot be moved later. */
int keep_elsewhere(struct plan *plan);
/* Keeps one thing of the staging folder's `old` in the journal's. */
int keep_one(struct plan *plan, const char *name);
/* After `commit`: keeps what was replaced, removes the staging folder. -1 with errno. */
int commit_finish(struct plan *plan);

#endif
