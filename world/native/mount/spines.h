/* Spines: folders above a mount inside a host tree. An ordinary user's overlay cannot lie over such a folder
   (EINVAL: locked child mounts). A small tmpfs takes its place, with a mount point per child: host overlays
   over subfolders, bind mounts of files, copies of links. Denied names, sockets and pipes are left out.
   Before each command the tmpfs follows the host's changes directly in the folder. */
#ifndef SUBSTRATE_MOUNT_SPINES_H
#define SUBSTRATE_MOUNT_SPINES_H

#include <stdbool.h>

#include "mount/stage.h"

/* Step `spine PATH`: announces a spine. All spines are announced before the first fill, because a spine may
   be a child of another. A spine without fill is only a place for mounts of the plan. */
int spine_add(const char *path);
/* Step `fill PATH`: mounts the spine with its children. 0, or -1 with errno and the child in `*path`. */
int spine_fill(const struct stage *stage, const char **path);
/* Step `sources TARGET`: mounts the sources of later children, in a folder closed to commands. */
int spines_sources(const struct stage *stage, const char *target);

/* Closes PID 1's descriptors, in the forker. */
void spines_let_go(void);
/* Prepares refreshes. Call after the pivot, with full capabilities. */
void spines_start(void);
/* True when PID 1 must keep the right to mount. */
bool spines_any(void);
/* Repeats the host's changes in the spines. Call before each command. */
void spines_refresh(void);

#endif
