/* What an overlay's upper layer says that changed, beside the tree below it. Costs what changed, not what stands below. */
#ifndef SUBSTRATE_CHANGES_CHANGE_WALK_H
#define SUBSTRATE_CHANGES_CHANGE_WALK_H

#include "changes/change_list.h"

struct walk_result {
  struct change_list changes;
  bool unhashed; /* some content was not read: too much of it, or not ours to read */
};

/* `upper` and `lower` are open folders. What was below and is no more is a change for each name that stood there. */
void change_walk(int upper, int lower, struct walk_result *result);

#endif
