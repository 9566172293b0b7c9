/* Unix sockets that a world's commands may reach by path: sockets bound in its network namespace, and sockets
   shared by the host. In the host's network namespace: sockets on which the world's commands listen. */
#ifndef SUBSTRATE_NOTIFY_CONNECTS_OWN_SOCKETS_H
#define SUBSTRATE_NOTIFY_CONNECTS_OWN_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* Takes a SOCKET field of SETUP: the path of a shared socket, as the world sees the path. Returns NULL or the
   error. */
const char *own_sockets_share(const uint8_t *path, size_t length);
/* Remembers the inodes of the shared sockets and opens the kernel's list of sockets. `host_network`: the world has
   the host's network namespace. Call in the finished world, before any command. */
void own_sockets_open(bool host_network);
/* True in the host's network namespace: abstract sockets there belong to the host. */
bool own_sockets_beside_hosts(void);
/* Adds a socket on which a command listens. */
void own_sockets_add(int socket);
/* True when commands may reach the socket file behind `file`, opened with O_PATH. `stat` is its fstat(2). */
bool own_sockets_reachable(int file, const struct stat *stat);

#endif
