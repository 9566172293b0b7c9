#ifndef SUBSTRATE_CHANGES_HELD_CHANGE_H
#define SUBSTRATE_CHANGES_HELD_CHANGE_H

#include "changes/text.h"

/* Carries out the plan in the folder `home`, all or nothing. Answers `done`, `conflict` (path, reason) or
   `failed` (path, reason, errno's text), each followed by notes (path, sentence) on steps that could not be
   rolled back. */
void change_run(const char *home, struct text *answer);
/* Finishes or rolls back a change whose process was killed. Answers `whole` (already ended), `finished`,
   `back`, or `stuck` with the reason; then notes. */
void change_recover(const char *home, struct text *answer);

#endif
