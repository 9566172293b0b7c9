/* One spine as its parts share it (spines.h). */
#ifndef SUBSTRATE_MOUNT_SPINE_H
#define SUBSTRATE_MOUNT_SPINE_H

#include <stddef.h>
#include <time.h>

#include "mount/spine_children.h"

struct spine {
  struct spine *next;
  struct spine_place place;
  struct timespec looked; /* the host's folder as it was when it was read; 0: read it again */
  struct child *children;
  size_t count;
  unsigned number;
  char path[];
};

struct spine *spine_find(const char *path);
/* The first one after `spine`, or of all for NULL. */
struct spine *spine_after(const struct spine *spine);

/* Makes, replaces and removes children until they are as the host's; with `made` only if the host's folder has changed since
   the last time, and what cannot be made is left out. 0, or -1 with errno, and in `*failed` the child that could not be made. */
int spine_compare(struct spine *spine, bool made, const char **failed);
/* Mount points for what the plan puts where the host has nothing: folders in the layer of whiteouts. */
int spine_reserve(struct spine *spine, int folder);
/* When the plan is done: children that other mounts lie on or below stay as they are. */
void spines_fix(void);

#endif
