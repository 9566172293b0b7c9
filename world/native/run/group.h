/* Pre-made cgroups of commands, PID 1's side. Without controllers the kernel counts only values that can be
   subtracted, and an empty group is reused for the next command: saves 30 of 33 µs. */
#ifndef SUBSTRATE_RUN_GROUP_H
#define SUBSTRATE_RUN_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/commands.h"
#include "outer/limits.h"

/* A leader gets two descriptors: the folder to start its runner in, and the file that kills the group. */
#define GROUP_HANDLES 2

struct group;

/* Opens the folder of the commands' groups, and closes fd 4. Call after the forker's start: no other process
   may have this descriptor. */
void groups_open(const struct limits *limits);
/* Returns the most descriptors that PID 1 holds per group. */
uint64_t groups_descriptors(void);

/* Takes a group; NULL in a world without cgroup. A failure ends the world: no command runs outside a
   group. */
struct group *group_take(void);
/* Fills in the leader's descriptors, and returns their number. */
int group_handles(const struct group *group, int handles[GROUP_HANDLES]);
void group_measure(const struct group *group, struct measured *measured);
/* Releases an empty group, for reuse unless the group was killed. Takes NULL. */
void group_end(struct group *group, bool killed);
/* Kills a group's processes and removes the group: now or, while processes are still dying, in a later
   groups_clear. Takes NULL. */
void group_destroy(struct group *group);
void groups_clear(void);

#endif
