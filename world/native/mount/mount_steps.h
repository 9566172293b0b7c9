/* Mount operations: carried out as the plan has decided, without decisions of their own. */
#ifndef SUBSTRATE_MOUNT_MOUNT_STEPS_H
#define SUBSTRATE_MOUNT_MOUNT_STEPS_H

#include "mount/stage.h"
#include "outer/setup.h"

/* Applies a step. 0, or -1 with errno and the failed path in `*path`. */
int mount_step_apply(const struct stage *stage, const struct mount_step *step, const char **path);

/* Covers the file at a target, if any. 0, or -1 with errno. */
int mask_place(const struct stage *stage, const char *target);
#endif
