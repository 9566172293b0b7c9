/* What the steps of a mount plan share. */
#ifndef SUBSTRATE_MOUNT_STAGE_H
#define SUBSTRATE_MOUNT_STAGE_H

/* Where things are while the plan is applied: the host at `host`, the world to be at `world`. */
struct stage {
  int host;       /* O_PATH of the host's tree, below /oldroot */
  int world;      /* O_PATH of what is on top of /newroot, opened anew for each step */
  int empty_file; /* mode 000, for masks */
  int empty_folder;
  int masks; /* the layer of whiteouts that host overlays share: its folders are named as the host's */
  int aside; /* what was taken out of that layer again */
  int proc; /* a procfs of our own, never reachable from the world; stays open afterwards */
};

#endif
