/* State shared by the steps of a mount plan. */
#ifndef SUBSTRATE_MOUNT_STAGE_H
#define SUBSTRATE_MOUNT_STAGE_H

/* Descriptors while the plan is applied: the host at `host`, the new world at `world`. */
struct stage {
  int host;       /* O_PATH of the host's tree, below /oldroot */
  int world;      /* O_PATH of the topmost mount at /newroot, reopened for each step */
  int empty_file; /* mode 000, for masks */
  int empty_folder;
  int masks; /* the layer of whiteouts shared by host overlays: same folder names as on the host */
  int aside; /* entries taken out of that layer again */
  int proc; /* a private procfs, never reachable from the world; stays open afterwards */
};

#endif
