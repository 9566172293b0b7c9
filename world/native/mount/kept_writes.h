/* Folders of the host that hold what commands write in scratch folders: one look says whether anything ever came there. */
#ifndef SUBSTRATE_MOUNT_KEPT_WRITES_H
#define SUBSTRATE_MOUNT_KEPT_WRITES_H

#include <stdbool.h>
#include <stdint.h>

/* Keeps the folder in view; the descriptor stays the caller's. 0, or -1 with errno. */
int kept_writes_watch(int folder);
/* In the forker: closes what PID 1 alone needs. */
void kept_writes_let_go(void);
/* After the mounts, before the first command: as they are now, nothing was written. */
void kept_writes_start(void);
uint64_t kept_writes_descriptors(void);
/* Whether something was made, changed or removed in one of them since. */
bool kept_writes_any(void);

#endif
