/* A leader: parent and subreaper of a single command and all its processes. */
#ifndef SUBSTRATE_RUN_LEADER_H
#define SUBSTRATE_RUN_LEADER_H

#include "run/group.h"

/* Waits on `socket` for a job, runs the job to its end, reports and exits. `outputs`: the write ends of its
   stdout and stderr. `proc`: a folder of procfs. `handles`: the command's cgroup, both -1 without cgroup. `terminal`: of a job,
   -1: the command is no job. */
_Noreturn void leader_run(int socket, const int outputs[2], int proc, const int handles[GROUP_HANDLES], int terminal);

#endif
