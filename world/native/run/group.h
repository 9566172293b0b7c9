/* One cgroup for each command, there ahead of need. PID 1's side. Where the kernel counts nothing in it that cannot be
   subtracted (no controllers) an empty one serves the next command: that saves 30 of 33 µs. */
#ifndef SUBSTRATE_RUN_GROUP_H
#define SUBSTRATE_RUN_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/commands.h"
#include "outer/limits.h"

/* What a leader gets: the folder to start its runner in, and the file that ends everything in it. */
#define GROUP_HANDLES 2

struct group;

/* Opens what belongs to commands, and closes fd 4. After the forker was started: nobody else is to have it. */
void groups_open(const struct limits *limits);
/* The most descriptors that PID 1 holds for one group. */
uint64_t groups_descriptors(void);

/* NULL when the world has no cgroup. One that cannot be made ends the world: nothing runs outside of one. */
struct group *group_take(void);
/* The descriptors for the leader, how many there are. */
int group_handles(const struct group *group, int handles[GROUP_HANDLES]);
void group_measure(const struct group *group, struct measured *measured);
/* Nobody is in it any more: it may serve again, unless it was killed. Takes NULL. */
void group_end(struct group *group, bool killed);
/* Ends who is in it, and removes it: now or, while someone is still dying, by a later groups_clear. Takes NULL. */
void group_destroy(struct group *group);
void groups_clear(void);

#endif
