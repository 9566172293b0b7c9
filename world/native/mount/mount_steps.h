/* One mount operation: what each of them does. They decide nothing; the plan did. */
#ifndef SUBSTRATE_MOUNT_MOUNT_STEPS_H
#define SUBSTRATE_MOUNT_MOUNT_STEPS_H

#include "mount/stage.h"
#include "outer/setup.h"

/* 0, or -1 with errno and the path that could not be served in `*path`. */
int mount_step_apply(const struct stage *stage, const struct mount_step *step, const char **path);

/* Covers what stands at a target, unless nothing does. 0, or -1 with errno. */
int mask_place(const struct stage *stage, const char *target);
#endif
