/* Host overlays: read-only overlays of host trees under a layer of whiteouts. A denied name is gone there whether it
   exists or not, nothing is made on the host, and a host's socket below does not connect: an overlay's
   socket file is another inode than the one it listens at. */
#ifndef SUBSTRATE_MOUNT_HOST_OVERLAYS_H
#define SUBSTRATE_MOUNT_HOST_OVERLAYS_H

#include <stdint.h>
#include <sys/stat.h>

#include "mount/stage.h"
#include "outer/setup.h"

/* A whiteout at an absolute host path, in the layer that every host overlay gets its part of. 0, or -1 with errno. */
int host_overlay_hide(const struct stage *stage, const char *path);
/* A file with this text at an absolute host path, in the same layer: it stands before the host's own, or where that has none,
   and nothing is made on the host. What is hidden stays hidden. 0, or -1 with errno. */
int host_overlay_show(const struct stage *stage, const char *path, const char *text);
/* A folder at an absolute host path, in the same layer: a mount point, also where the host has none. What is hidden stays
   hidden. 0, or -1 with errno. */
int host_overlay_folder(const struct stage *stage, const char *path);
/* Opens the folder of that layer for the absolute host path of a folder with that status; its parent must be there. Or -1. */
int host_overlay_layer(int masks, const char *path, const struct stat *host);
/* A detached host overlay of the host's folder, as an ordinary user makes it. Or -1. */
int host_overlay_of(int masks, int host, uint64_t attributes);
/* Has a detached host overlay of the host's folder forget names (dentries.h), where the host can change. 0, or -1 with errno. */
int host_overlay_watch(int tree, int host);
/* Lets go of what host overlays share while they are placed. */
void host_overlay_finish(void);
/* veil SOURCE TARGET [UPPER WORK] [userxattr]. 0, or -1 with errno and the path in `*path`. */
int host_overlay_place(const struct stage *stage, const struct mount_step *step, const char **path);

#endif
