/* The forker: the small process that all commands descend from, without any privilege. */
#ifndef SUBSTRATE_RUN_FORKER_H
#define SUBSTRATE_RUN_FORKER_H

#include <sys/resource.h>
#include <sys/types.h>

/* Starts it; its pid, and PID 1's end of the socket to it. Ends the world on failure. */
pid_t forker_start(int proc, int null, int *socket);

#endif
