/* Veils: read-only overlays of host trees under a layer of whiteouts. A denied name is gone there whether it
   exists or not, nothing is made on the host, and a host's socket below does not connect: an overlay's
   socket file is another inode than the one it listens at. */
#ifndef SUBSTRATE_VEIL_H
#define SUBSTRATE_VEIL_H

#include "mounts.h"

/* A whiteout at an absolute host path, in the layer that every veil gets its part of. 0, or -1 with errno. */
int veil_hide(const struct stage *stage, const char *path);
/* veil SOURCE TARGET [UPPER WORK] [userxattr]. 0, or -1 with errno and the path in `*path`. */
int veil_place(const struct stage *stage, const struct mount_step *step, const char **path);

#endif
