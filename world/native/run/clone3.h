/* Starts a process that shares its parent's memory and is born in another cgroup, by clone3(2): the C library
   has no wrapper with a stack. */
#ifndef SUBSTRATE_RUN_CLONE3_H
#define SUBSTRATE_RUN_CLONE3_H

#include <stddef.h>
#include <sys/types.h>

/* The child runs `run` on `stack` (aligned to 16 bytes) and exits with its result; the parent gets SIGCHLD.
   `group`: folder of the cgroup to be born in; -1: the parent's, by plain clone(2), which every filter
   allows. Returns the pid, or -1 with errno. */
pid_t clone3_sharing_memory(int (*run)(void), char *stack, size_t size, int group);

#endif
