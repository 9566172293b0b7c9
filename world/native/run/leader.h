/* A leader: the parent, and subreaper, of one command and of all that the command starts. */
#ifndef SUBSTRATE_RUN_LEADER_H
#define SUBSTRATE_RUN_LEADER_H

#include "run/group.h"

/* Waits on `socket` for one job, runs it to its end, reports and exits. `outputs`: the write ends of its
   stdout and stderr. `proc`: a folder of procfs. `handles`: the command's cgroup, both -1 where it has none. */
_Noreturn void leader_run(int socket, const int outputs[2], int proc, const int handles[GROUP_HANDLES]);

#endif
