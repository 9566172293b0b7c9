/* The mount plan: staging, the operations one after the other, the pivot into the world. */
#ifndef SUBSTRATE_MOUNT_MOUNTS_H
#define SUBSTRATE_MOUNT_MOUNTS_H

#include "mount/stage.h"
#include "outer/setup.h"

/* Builds the staging area and makes it the root. Ends the world on failure. */
void mounts_stage(struct stage *stage);
/* Applies every MOUNT of the set-up in order. */
void mounts_apply(struct stage *stage, const struct setup *setup);
/* Opens what is on top of the new root now, as `stage->world`; to be closed by the caller. */
void mounts_look_into(struct stage *stage);
/* Makes /newroot the root and lets go of everything else but `stage->proc`. */
void mounts_finish(struct stage *stage);

#endif
