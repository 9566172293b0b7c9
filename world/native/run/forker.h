/* The forker: the small unprivileged process that all commands descend from. */
#ifndef SUBSTRATE_RUN_FORKER_H
#define SUBSTRATE_RUN_FORKER_H

#include <sys/resource.h>
#include <sys/types.h>

/* PID 1's first child. The world's filter refuses to change the limits of this pid (seccomp/table.ts): every
   command inherits them. */
#define FORKER_PID 2

/* Starts the forker. Returns its pid, and PID 1's end of its socket. Ends the world on failure. */
pid_t forker_start(int proc, int null, int *socket);

#endif
