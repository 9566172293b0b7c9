/* Host folders behind the scratch folders of commands: a check of change times shows whether any file was
   ever written there. */
#ifndef SUBSTRATE_MOUNT_KEPT_WRITES_H
#define SUBSTRATE_MOUNT_KEPT_WRITES_H

#include <stdbool.h>
#include <stdint.h>

/* Watches the folder; the caller keeps the descriptor. 0, or -1 with errno. */
int kept_writes_watch(int folder);
/* Closes PID 1's descriptors, in the forker. */
void kept_writes_let_go(void);
/* Records the present state as unwritten. Call after the mounts, before the first command. */
void kept_writes_start(void);
uint64_t kept_writes_descriptors(void);
/* True when any folder's entries changed since. */
bool kept_writes_any(void);

#endif
