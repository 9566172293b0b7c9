/* Git folders that commands of this world made and that are not sealed yet. */
#ifndef SUBSTRATE_DENY_NEW_REPOSITORIES_H
#define SUBSTRATE_DENY_NEW_REPOSITORIES_H

#include <stdbool.h>

/* Adds a git folder that a command may have made, the folder of a worktree or submodule inside such a git
   folder, or a link to a git folder. When only leftovers of finished commands run, reports to the broker at
   once (BROUGHT). */
void new_repository_add(const char *folder);
/* True when the folder is in the list. */
bool new_repository_waits(const char *folder);
/* Returns the folder with this number, NULL at the end. */
const char *new_repository_at(int at);
/* Removes a folder; the last folder takes its number. */
void new_repository_drop(int at);
/* True when more folders appeared than fit. */
bool new_repositories_overflowed(void);
/* True when the path is no longer a folder. */
bool new_repository_is_gone(const char *folder);

#endif
