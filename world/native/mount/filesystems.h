/* Mounts new file systems and detached trees: tmpfs, proc, devpts with options, and overlays. */
#ifndef SUBSTRATE_MOUNT_FILESYSTEMS_H
#define SUBSTRATE_MOUNT_FILESYSTEMS_H

#include <stdint.h>

#include "mount/stage.h"
#include "outer/setup.h"

/* Mounts a new file system with comma-separated options at a target. */
int place_filesystem(const struct stage *stage, const char *type, const char *options, const char *target,
                     uint64_t attributes);
int place_overlay(const struct stage *stage, const struct mount_step *step, const char **path);
/* Sets a host folder as a layer of a future overlay. Returns a descriptor, to be closed after mounting, or
   -1. */
int overlay_layer(const struct stage *stage, int context, const char *key, const char *source);
/* Moves a detached mount (taken over, -1 allowed) onto a target, after adding attributes. */
int place_tree(const struct stage *stage, int tree, const char *target, uint64_t attributes);
/* Covers a folder of the world, after the pivot, with an empty one that nobody may write. Descriptors opened before still
   reach what lies under it. */
int folder_cover(const char *path);

#endif
