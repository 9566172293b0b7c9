/* The socket on which a service manager hears the broker (sd_notify(3)). */
#ifndef SUBSTRATE_FRONT_NOTIFY_H
#define SUBSTRATE_FRONT_NOTIFY_H

#include <stdbool.h>

/* Connects to the socket that NOTIFY_SOCKET names and leaves the descriptor, by the number in SUBSTRATE_NOTIFY_FD, to the Node that
   this process becomes: Node has no datagram sockets of the Unix family, but can write(2) to one. systemd sees the sender's pid, so the
   main process must send, and no helper (NotifyAccess=main). Nothing without NOTIFY_SOCKET. False after a message on stderr. */
bool notify_open(void);

#endif
