/* A runner: the process that becomes the command. It waits for its job with all else done. */
#ifndef SUBSTRATE_RUN_RUNNER_H
#define SUBSTRATE_RUN_RUNNER_H

#include <stdbool.h>
#include <sys/types.h>

/* What the runner left in the memory that it shares with its leader. */
struct runner {
  bool received; /* it got a job; else it was killed, or PID 1 needs it no more */
  bool keep;
  const char *step; /* NULL: the program runs */
  const char *path;
  int error;
};

/* Starts it as a child that shares memory with its caller, which must then wait in runner_wait and do
   nothing else until that returns. -1 with errno. `outputs`: its stdout and stderr. `group`: the cgroup that it is born
   in, -1: its caller's. */
pid_t runner_start(int channel, const int outputs[2], int group);
/* Until the runner has become the command, or has ended. `signals`: a signalfd for SIGCHLD. */
const struct runner *runner_wait(pid_t pid, int signals);

#endif
