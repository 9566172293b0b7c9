/* What SETUP limits: parsed, kept for the small processes, and set where each belongs. */
#ifndef SUBSTRATE_OUTER_LIMITS_H
#define SUBSTRATE_OUTER_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/fields.h"

#define CGROUP_NAME_MAX 127

/* 0: not set. */
struct limits {
  char cgroup[CGROUP_NAME_MAX + 1]; /* name of the world's cgroup, "": it has none */
  uint64_t memory;                  /* 1: commands have a memory controller */
  uint64_t pids;                    /* pids.max of one command */
  uint64_t pid_max;
  uint64_t nproc;
  uint64_t nofile;
};

/* Takes one LIMIT field. False when it is malformed or unknown. Pure. */
bool limits_take(const struct field *field, struct limits *limits);

/* Keeps a copy for whoever is forked later. */
void limits_keep(const struct limits *limits);
const struct limits *limits_kept(void);

/* PID 1: kernel.pid_max of this pid namespace. The value that holds now, 0: none of ours. */
uint64_t limits_set_pid_max(int proc, const struct limits *limits);

/* The forker: what all it starts inherits. Ends the world on failure. The caller is not dumpable afterwards. */
void limits_enter_forker(int proc);

/* A runner: what is the command's alone. 0, or -1 with errno. */
int limits_enter_command(void);

#endif
