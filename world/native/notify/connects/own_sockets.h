/* Unix sockets that a world's commands may reach by path: sockets bound in its network namespace, and sockets
   shared by the host. */
#ifndef SUBSTRATE_NOTIFY_CONNECTS_OWN_SOCKETS_H
#define SUBSTRATE_NOTIFY_CONNECTS_OWN_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* Takes a SOCKET field of SETUP: the path of a shared socket, as the world sees the path. Returns NULL or the
   error. */
const char *own_sockets_share(const uint8_t *path, size_t length);
/* Remembers the inodes of the shared sockets and opens the kernel's list of sockets. Call in the finished
   world, before any command. */
void own_sockets_open(void);
/* True when commands may reach the socket file behind `file`, opened with O_PATH. `stat` is its fstat(2). */
bool own_sockets_reachable(int file, const struct stat *stat);

#endif
