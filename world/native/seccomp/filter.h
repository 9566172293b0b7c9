/* Seccomp filters: a filter for the whole world, loaded by the forker and inherited by every process, and a
   short filter that each runner adds for calls that its leader still needs. */
#ifndef SUBSTRATE_SECCOMP_FILTER_H
#define SUBSTRATE_SECCOMP_FILTER_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum filter { FILTER_WORLD, FILTER_COMMAND, FILTER_RECORD, FILTERS };

/* Copies a filter out of its frame, which is gone when the forker starts. Ends the world without memory. Call
   after guard_keep. */
void filter_keep(enum filter which, const uint8_t *instructions, size_t count);

/* Loads the world's filter for this process and its descendants. Needs no_new_privs. A filter refused by the
   kernel ends the world: no command runs without the filter. Does nothing without a filter in SETUP. With a
   guard (log mode) the filter gets a listener, sent to PID 1 over the forker's socket. */
void filter_load_world(int socket);

/* Starts a command's own program by execve(2). A listener is notified only with `asked`. */
void filter_execute(const char *file, char *const *argv, char *const *envp, bool asked);
/* True when a notified call is the start of a command's own program. */
bool filter_is_own_start(const struct seccomp_data *call);
/* True when commands load FILTER_RECORD, and so may have listeners. */
bool filter_listens(void);
/* Loads a command's own filter in addition: FILTER_RECORD with a listener for the caller, or, where the
   kernel grants no listener, FILTER_COMMAND with `*listener` -1. 0 also without a filter in SETUP; -1 with
   errno when the kernel refuses: the command must not run then. No allocation. */
int filter_load_command(int *listener);

#endif
