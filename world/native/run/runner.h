/* A runner: the process that becomes the command, prepared in advance and waiting for its job. */
#ifndef SUBSTRATE_RUN_RUNNER_H
#define SUBSTRATE_RUN_RUNNER_H

#include <stdbool.h>
#include <sys/types.h>

/* Results that the runner leaves in memory shared with its leader. */
struct runner {
  bool received; /* the runner got a job; otherwise killed, or not needed by PID 1 any more */
  bool keep;
  const char *step; /* failed step, NULL: the program runs */
  const char *path;
  int error;
};

/* Starts the runner as a child that shares memory with the caller, who must then only wait in runner_wait. -1
   with errno. `outputs`: its stdout and stderr. `group`: the cgroup to be born in, -1: the caller's. `is_job`: a process group of the
   caller's session, else a session of its own. */
pid_t runner_start(int channel, const int outputs[2], int group, bool is_job);
/* Waits until the runner has become the command, or has ended. `signals`: a signalfd for SIGCHLD. */
const struct runner *runner_wait(pid_t pid, int signals);

#endif
