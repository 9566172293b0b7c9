/* Host overlays: read-only overlays of host trees under a layer of whiteouts. A denied name is missing there
   whether or not the host has the file, and nothing is made on the host. A host's socket refuses connections
   there: the overlay's socket file is another inode than the listening socket's. */
#ifndef SUBSTRATE_MOUNT_HOST_OVERLAYS_H
#define SUBSTRATE_MOUNT_HOST_OVERLAYS_H

#include <stdint.h>
#include <sys/stat.h>

#include "mount/stage.h"
#include "outer/setup.h"

/* Makes a whiteout at an absolute host path, in the layer shared by all host overlays. 0, or -1 with
   errno. */
int host_overlay_hide(const struct stage *stage, const char *path);
/* Makes a file with this text at an absolute host path, in the same layer: the file covers the host's own, or
   stands alone, and nothing is made on the host. Hidden names stay hidden. 0, or -1 with errno. */
int host_overlay_show(const struct stage *stage, const char *path, const char *text);
/* Makes a folder at an absolute host path, in the same layer: a mount point even where the host has no
   folder. Hidden names stay hidden. 0, or -1 with errno. */
int host_overlay_folder(const struct stage *stage, const char *path);
/* Opens the layer's folder for the absolute host path of a folder with this status; the parent must exist. -1
   on failure. */
int host_overlay_layer(int masks, const char *path, const struct stat *host);
/* Makes a detached host overlay of the host's folder, with an ordinary user's rights. -1 on failure. */
int host_overlay_of(int masks, int host, uint64_t attributes);
/* Registers a detached host overlay for forgetting names (dentries.h), unless the host's folder cannot
   change. 0, or -1 with errno. */
int host_overlay_watch(int tree, int host);
/* Releases resources that host overlays share while being placed. */
void host_overlay_finish(void);
/* Step `veil SOURCE TARGET [UPPER WORK] [userxattr]`. 0, or -1 with errno and the path in `*path`. */
int host_overlay_place(const struct stage *stage, const struct mount_step *step, const char **path);

#endif
