/* listen(2) in the host's network namespace: PID 1 makes the call itself, on a duplicate of the caller's socket. */
#ifndef SUBSTRATE_NOTIFY_CONNECTS_LISTENS_H
#define SUBSTRATE_NOTIFY_CONNECTS_LISTENS_H

#include <linux/seccomp.h>
#include <stdbool.h>

struct command;

/* A notice_handler. Refuses abstract Unix sockets: the host's programs would reach a command under a name that they
   take for their own server's. Remembers the other Unix sockets as the world's. */
bool listen_serve(int listener, const struct seccomp_notif *notice, struct command *command);

#endif
