/* Calls by which a command makes namespaces that its world refuses (world/seccomp/table.ts). */
#ifndef SUBSTRATE_NOTIFY_NAMESPACE_CALLS_H
#define SUBSTRATE_NOTIFY_NAMESPACE_CALLS_H

#include <linux/seccomp.h>
#include <stdbool.h>

struct command;

/* Refuses the call with EPERM and reports it. A notice_handler. */
bool namespace_call_serve(int listener, const struct seccomp_notif *notice, struct command *command);

#endif
