/* Spines: folders on the way to a mount of the host. No ordinary user's overlay may lie over one (EINVAL: locked child mounts), so
   such a folder is a small file system of our own, in which each child has its place: folders below host overlays of their own, files
   bound, links copied. Denied names, sockets and pipes have none. Before each command what the host has changed directly in
   the folder is changed here too. */
#ifndef SUBSTRATE_MOUNT_SPINES_H
#define SUBSTRATE_MOUNT_SPINES_H

#include <stdbool.h>

#include "mount/stage.h"

/* The step `spine PATH`: tells of all of them before the first is filled, since one may be the child of another. One that is
   not filled is a place for what the plan puts there itself. */
int spine_add(const char *path);
/* The step `fill PATH`: puts the folder in its place, with its children. 0, or -1 with errno and the child in `*path`. */
int spine_fill(const struct stage *stage, const char **path);
/* The step `sources TARGET`: what children are bound from later, in a folder that nobody inside may enter. */
int spines_sources(const struct stage *stage, const char *target);

/* In the forker: closes what PID 1 alone needs. */
void spines_let_go(void);
/* After the pivot, with full capabilities. */
void spines_start(void);
/* True when PID 1 must stay able to mount. */
bool spines_any(void);
/* Before a command begins. */
void spines_refresh(void);

#endif
