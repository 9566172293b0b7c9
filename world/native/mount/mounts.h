/* The mount plan: staging, the operations in order, the pivot into the world. */
#ifndef SUBSTRATE_MOUNT_MOUNTS_H
#define SUBSTRATE_MOUNT_MOUNTS_H

#include <stdbool.h>

#include "mount/stage.h"
#include "outer/setup.h"

/* Builds the staging area and makes it the root. Ends the world on failure. */
void mounts_stage(struct stage *stage);
/* Applies every MOUNT of the set-up in order. */
void mounts_apply(struct stage *stage, const struct setup *setup);
/* Opens the topmost mount at the new root as `stage->world`; closed by the caller. */
void mounts_look_into(struct stage *stage);
/* Makes /newroot the root and releases all of the stage except `stage->proc`. `keeps`: with a keeper (keeper.h). */
void mounts_finish(struct stage *stage, bool keeps);

#endif
