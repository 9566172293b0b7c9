#ifndef SUBSTRATE_CHANGES_HELD_KEEP_H
#define SUBSTRATE_CHANGES_HELD_KEEP_H

#include "changes/held_plan.h"

/* Renames `name` in `from` to `as` in `to`, as renameat2(2) with `flags`. `mode` is that of what is moved, and `other`, of
   what comes back when two are exchanged: a folder that its owner may not write is moved all the same, and stays so. */
int move(int from, const char *name, unsigned mode, int to, const char *as, unsigned other, unsigned flags);

/* Copies what was replaced into the journal's folder, where that is another file system and it cannot be moved later. */
int keep_elsewhere(struct plan *plan);
/* Keeps one thing of the staging folder's `old` in the journal's. */
int keep_one(struct plan *plan, const char *name);
/* After `commit`: keeps what was replaced, removes the staging folder. -1 with errno. */
int commit_finish(struct plan *plan);

#endif
