/* Starts of programs: told of, and held back where a gate asks about them. */
#ifndef SUBSTRATE_NOTIFY_STARTS_STARTS_H
#define SUBSTRATE_NOTIFY_STARTS_STARTS_H

#include <linux/seccomp.h>
#include <stdbool.h>

struct command;

/* Whether it is execve or execveat. */
bool start_is(const struct seccomp_data *call);
/* One waits at this listener. A start that belongs to no command is refused. */
void start_serve(int listener, const struct seccomp_notif *notice, struct command *command);

#endif
