#ifndef SUBSTRATE_CHANGES_HELD_KEEP_H
#define SUBSTRATE_CHANGES_HELD_KEEP_H

#include "changes/held_plan.h"

/* Renames `name` in `from` to `as` in `to`, like renameat2(2) with `flags`. `mode` is the moved file's mode,
   and `other` the mode of the file that comes back in an exchange: a folder not writable for its owner is
   moved too, and keeps its mode. */
int move(int from, const char *name, unsigned mode, int to, const char *as, unsigned other, unsigned flags);

/* Copies replaced files into the journal's folder when the journal is on another file system. */
int keep_elsewhere(struct plan *plan);
/* Moves or copies an entry of the staging folder's `old` to the journal's. */
int keep_one(struct plan *plan, const char *name);
/* Keeps the replaced files and removes the staging folder, after `commit`. -1 with errno. */
int commit_finish(struct plan *plan);

#endif
