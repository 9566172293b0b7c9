/* Starts of programs: told of, and held back where a gate asks about them. */
#ifndef SUBSTRATE_NOTIFY_STARTS_STARTS_H
#define SUBSTRATE_NOTIFY_STARTS_STARTS_H

#include <linux/seccomp.h>
#include <stdbool.h>

struct command;

/* A notice_handler of execve and execveat. A start that belongs to no command is refused. */
bool start_serve(int listener, const struct seccomp_notif *notice, struct command *command);

#endif
