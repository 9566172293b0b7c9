/* Git's records of worktrees, `.git/worktrees/NAME`. Git removes such a folder file by file, and stops at the first that
   stays: a record whose seals are kept must not lose the rest. */
#ifndef SUBSTRATE_DENY_WORKTREES_H
#define SUBSTRATE_DENY_WORKTREES_H

#include <stdbool.h>

/* True for a file without which git loses the worktree, in a record with sealed files: a command removes it by the broker
   alone. */
bool worktree_needs(const char *path);

#endif
