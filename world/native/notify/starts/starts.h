/* Program starts: reported, and held back where a gate asks about them. */
#ifndef SUBSTRATE_NOTIFY_STARTS_STARTS_H
#define SUBSTRATE_NOTIFY_STARTS_STARTS_H

#include <linux/seccomp.h>
#include <stdbool.h>

struct command;

/* A notice_handler for execve and execveat. Refuses a start outside every command. */
bool start_serve(int listener, const struct seccomp_notif *notice, struct command *command);

#endif
