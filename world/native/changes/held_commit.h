#ifndef SUBSTRATE_CHANGES_HELD_COMMIT_H
#define SUBSTRATE_CHANGES_HELD_COMMIT_H

#include "changes/held_stage.h"

/* Checks that every step finds the state expected by the plan. Changes nothing. */
struct verdict commit_check(struct plan *plan);
/* Puts all staged files in place and writes `record`: the change has happened then. On any other verdict the
   caller rolls back. */
struct verdict commit(struct plan *plan);
/* Keeps the replaced files and removes the staging folder, after `commit`. -1 with errno. */
int commit_finish(struct plan *plan);

/* Moves or copies an entry of the staging folder's `old` to the journal's. */
int keep_one(struct plan *plan, const char *name);
/* Renames `name` in `from` to `as` in `to`, like renameat2(2) with `flags`. `mode` is the moved file's mode,
   and `other` the mode of the file that comes back in an exchange: a folder not writable for its owner is
   moved too, and keeps its mode. */
int move(int from, const char *name, unsigned mode, int to, const char *as, unsigned other, unsigned flags);

#endif
