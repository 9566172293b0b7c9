#ifndef HELD_MOVES_H
#define HELD_MOVES_H

/* Renames `name` in `from` to `as` in `to`, as renameat2(2) with `flags`. `mode` is that of what is moved, and `other`, of
   what comes back when two are exchanged: a folder that its owner may not write is moved all the same, and stays so. */
int move(int from, const char *name, unsigned mode, int to, const char *as, unsigned other, unsigned flags);

#endif
