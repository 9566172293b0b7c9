/* Git folders that commands of this world made and that are not sealed yet. */
#ifndef SUBSTRATE_DENY_NEW_REPOSITORIES_H
#define SUBSTRATE_DENY_NEW_REPOSITORIES_H

#include <stdbool.h>

/* A git folder turned up that a command may have made, or the folder of a worktree or a submodule in one, or a link to one. When only
   processes that outlived their commands are left, the broker is told at once (BROUGHT). */
void new_repository_add(const char *folder);
/* Whether it is one of them. */
bool new_repository_waits(const char *folder);
/* The folder of that number, NULL: there are no more. */
const char *new_repository_at(int at);
/* Another one gets its number. */
void new_repository_drop(int at);
/* Whether more turned up than there was room for. */
bool new_repositories_overflowed(void);
/* No folder stands there any more. */
bool new_repository_is_gone(const char *folder);

#endif
