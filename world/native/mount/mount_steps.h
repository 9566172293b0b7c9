/* One mount operation: what each of them does. They decide nothing; the plan did. */
#ifndef SUBSTRATE_MOUNT_MOUNT_STEPS_H
#define SUBSTRATE_MOUNT_MOUNT_STEPS_H

#include "mount/mounts.h"

/* 0, or -1 with errno and the path that could not be served in `*path`. */
int mount_step_apply(const struct stage *stage, const struct mount_step *step, const char **path);

/* Covers what stands at a target, unless nothing does. 0, or -1 with errno. */
int mask_place(const struct stage *stage, const char *target);
/* Puts a new file system with comma-separated options at a target. */
int place_filesystem(const struct stage *stage, const char *type, const char *options, const char *target,
                     uint64_t attributes);
int place_overlay(const struct stage *stage, const struct mount_step *step, const char **path);
/* Names a host folder as a layer of an overlay to be. Its descriptor, to be closed after the mount is made, or -1. */
int overlay_layer(const struct stage *stage, int context, const char *key, const char *source);
/* Moves a detached mount (taken over, -1 allowed) onto a target, after adding attributes. */
int place_tree(const struct stage *stage, int tree, const char *target, uint64_t attributes);

#endif
