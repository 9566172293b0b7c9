/* Lists the changes in an overlay's upper layer against the tree below. The cost grows with the changes, not
   with the tree. */
#ifndef SUBSTRATE_CHANGES_CHANGE_WALK_H
#define SUBSTRATE_CHANGES_CHANGE_WALK_H

#include "changes/change_list.h"

struct walk_result {
  struct change_list changes;
  bool unhashed; /* some content was not read: too much, or no permission */
};

/* Compares the open folders `upper` and `lower`. Each deleted lower name is a change of its own. */
void change_walk(int upper, int lower, struct walk_result *result);

#endif
