/* Limits of SETUP: parsed, kept for the small processes, and set in the right process. */
#ifndef SUBSTRATE_OUTER_LIMITS_H
#define SUBSTRATE_OUTER_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/fields.h"

#define CGROUP_NAME_MAX 127

/* Limits; 0: not set. */
struct limits {
  char cgroup[CGROUP_NAME_MAX + 1]; /* name of the world's cgroup, "": no cgroup */
  uint64_t memory;                  /* 1: commands have a memory controller */
  uint64_t pids;                    /* pids.max of a command */
  uint64_t pid_max;
  uint64_t nproc;
  uint64_t nofile;
};

/* Takes a LIMIT field. False when malformed or unknown. Pure. */
bool limits_take(const struct field *field, struct limits *limits);

/* Keeps a copy for processes forked later. */
void limits_keep(const struct limits *limits);
const struct limits *limits_kept(void);

/* Sets kernel.pid_max of this pid namespace (PID 1). Returns the value in force, 0: not set. */
uint64_t limits_set_pid_max(int proc, const struct limits *limits);

/* Sets limits that every command inherits (the forker). Ends the world on failure. The caller is not dumpable
   afterwards. */
void limits_enter_forker(int proc);

/* Sets the limits of a single command (a runner). 0, or -1 with errno. */
int limits_enter_command(void);

#endif
