/* The forker: the small unprivileged process that all commands descend from. */
#ifndef SUBSTRATE_RUN_FORKER_H
#define SUBSTRATE_RUN_FORKER_H

#include <sys/resource.h>
#include <sys/types.h>

/* Starts the forker. Returns its pid, and PID 1's end of its socket. Ends the world on failure. */
pid_t forker_start(int proc, int null, int *socket);

#endif
