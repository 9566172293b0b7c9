/* Starting a process that shares its parent's memory and is born in another cgroup: clone3(2), for which the C library
   has no wrapper that takes a stack. */
#ifndef SUBSTRATE_RUN_CLONE3_H
#define SUBSTRATE_RUN_CLONE3_H

#include <stddef.h>
#include <sys/types.h>

/* The child runs `run` on `stack` (aligned to 16 bytes) and exits with what it returns; its parent gets SIGCHLD.
   `group`: the folder of the cgroup that it is born in, -1: its parent's, by the plain clone(2) that every filter lets
   pass. Its pid, or -1 with errno. */
pid_t clone3_sharing_memory(int (*run)(void), char *stack, size_t size, int group);

#endif
