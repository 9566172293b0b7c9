/* The mount plan: staging, the operations one after the other, the pivot into the world. */
#ifndef SUBSTRATE_MOUNT_MOUNTS_H
#define SUBSTRATE_MOUNT_MOUNTS_H

#include "outer/setup.h"

/* Where things are while the plan is applied: the host at `host`, the world to be at `world`. */
struct stage {
  int host;       /* O_PATH of the host's tree, below /oldroot */
  int world;      /* O_PATH of what is on top of /newroot, opened anew for each step */
  int empty_file; /* mode 000, for masks */
  int empty_folder;
  int masks; /* the layer of whiteouts that veils share: its folders are named as the host's */
  int aside; /* what was taken out of that layer again */
  int proc; /* a procfs of our own, never reachable from the world; stays open afterwards */
};

/* Builds the staging area and makes it the root. Ends the world on failure. */
void mounts_stage(struct stage *stage);
/* Applies every MOUNT of the set-up in order. */
void mounts_apply(struct stage *stage, const struct setup *setup);
/* Makes /newroot the root and lets go of everything else but `stage->proc`. */
void mounts_finish(struct stage *stage);

#endif
