/* The world's cgroup in the outer process: PID 1 is born inside, and the outer process removes the cgroup
   after the world. */
#ifndef SUBSTRATE_OUTER_CGROUP_H
#define SUBSTRATE_OUTER_CGROUP_H

#include <sys/types.h>

#include "lib/channel.h"
#include "outer/limits.h"

/* Folder of the world's group, with `init` and `commands` inside; opened by the broker, because no world has
   a writable cgroup file system. */
#define CGROUP_FD (CHANNEL_FD + 1)

/* Checks fd 4 against SETUP; closes fd 4 when SETUP names no cgroup. Ends the world on a mismatch. */
void cgroup_take(const struct limits *limits);

/* Closes fd 4 if used for the group: processes that start commands must not have the descriptor. */
void cgroup_let_go(const struct limits *limits);

/* Forks PID 1, in the group `init` if there is a group. */
pid_t cgroup_fork_init(const struct limits *limits);

/* Removes the groups of a finished world, unless a process is left inside. */
void cgroup_remove(const struct limits *limits);

#endif
