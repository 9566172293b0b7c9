/* Git folders that somebody else makes at this moment: a person, or a command of another world. Until such a folder has its settings,
   this world's commands cannot write in it (a read-only mount), so what turns up in it is not theirs, whatever calls of theirs are in
   progress. A clone gets its hooks and settings within milliseconds. */
#ifndef SUBSTRATE_DENY_CLOSINGS_H
#define SUBSTRATE_DENY_CLOSINGS_H

#include <stdbool.h>

/* A git folder below `top` turned up that no command of this world made. What is no folder stays open. */
void closing_begin(const char *top, const char *folder);
/* Whether no command can write what `path` names directly in its folder. */
bool closing_covers(const char *path);
/* Whether a file stands in it that git reads as settings, or it is none that can be opened. */
bool closing_is_over(const char *folder);
/* Whether somebody may be making it: it has no settings, and changed some seconds ago. */
bool closing_is_recent(const char *folder);
/* It has its settings: as any other folder of a person's from now on. */
void closing_end(const char *folder);
/* Opens what never got settings. In how many milliseconds it wants to be asked again, -1: there is nothing to open. */
int closings_check(void);

#endif
