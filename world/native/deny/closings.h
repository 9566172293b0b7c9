/* Git folders that somebody else is making at this moment: a person, or a command of another world. Until
   such a folder has its settings, a read-only mount keeps this world's commands from writing there, so new
   names inside are not theirs, whatever calls are in progress. A clone gets its hooks and settings within
   milliseconds. */
#ifndef SUBSTRATE_DENY_CLOSINGS_H
#define SUBSTRATE_DENY_CLOSINGS_H

#include <stdbool.h>

/* Closes a new git folder below `top` that no command of this world made. A path without a folder stays
   open. */
void closing_begin(const char *top, const char *folder);
/* True when no command can write the entry `path` of its folder. */
bool closing_covers(const char *path);
/* True when the folder contains a settings file of git, or cannot be opened as a folder. */
bool closing_is_over(const char *folder);
/* True when somebody may be making the folder: without settings, and changed some seconds ago. */
bool closing_is_recent(const char *folder);
/* Reopens a folder that has its settings: from now on an ordinary git folder of a person. */
void closing_end(const char *folder);
/* Reopens folders that never got settings. Returns milliseconds until the next check, -1: no folder is
   closed. */
int closings_check(void);

#endif
