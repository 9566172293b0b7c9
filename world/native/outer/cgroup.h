/* The world's cgroup, as the outer process has it: PID 1 is born in it, and it goes when the world has. */
#ifndef SUBSTRATE_OUTER_CGROUP_H
#define SUBSTRATE_OUTER_CGROUP_H

#include <sys/types.h>

#include "lib/channel.h"
#include "outer/limits.h"

/* The folder of the world's group, with `init` and `commands` in it; the broker opened it, since no world has a
   writable cgroup file system. */
#define CGROUP_FD (CHANNEL_FD + 1)

/* Checks that fd 4 is what SETUP says; closes it when SETUP speaks of none. Ends the world otherwise. */
void cgroup_take(const struct limits *limits);

/* Closes fd 4 where it is the group: to whoever starts commands it is not known. */
void cgroup_let_go(const struct limits *limits);

/* Forks PID 1, into the group `init` where there is one. */
pid_t cgroup_fork_init(const struct limits *limits);

/* Removes the groups of a world that is over, as far as nobody is in them. */
void cgroup_remove(const struct limits *limits);

#endif
