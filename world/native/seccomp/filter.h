/* The system calls that no command may make: one filter, loaded once in the forker and inherited by all it starts,
   and a short one that each runner adds for what its leader still needs. */
#ifndef SUBSTRATE_SECCOMP_FILTER_H
#define SUBSTRATE_SECCOMP_FILTER_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum filter { FILTER_WORLD, FILTER_COMMAND, FILTER_RECORD, FILTERS };

/* Keeps a copy: the frame it came in is gone when the forker starts. Ends the world when there is no room. After guard_keep. */
void filter_keep(enum filter which, const uint8_t *instructions, size_t count);

/* The filter of all: loads what was kept, for this process and all it starts. Needs no_new_privs. A filter that the
   kernel does not take ends the world: nothing runs without it. Does nothing when none was sent. With a guard (log
   mode) the filter gets a listener, which goes to PID 1 over the forker's socket. */
void filter_load_world(int socket);

/* execve(2) of a command's own program. A listener is told of it only when it is `asked`. */
void filter_execute(const char *file, char *const *argv, char *const *envp, bool asked);
/* Whether a call that a listener is told of is that one. */
bool filter_is_own_start(const struct seccomp_data *call);
/* Whether commands load FILTER_RECORD, and so may have listeners. */
bool filter_listens(void);
/* A command's own, on top of that: FILTER_RECORD with a listener, which the caller then has (else -1), or FILTER_COMMAND
   where the kernel gives none. 0 also when none was sent, -1 with errno when the kernel does not take it: nothing may
   run then. No allocation. */
int filter_load_command(int *listener);

#endif
