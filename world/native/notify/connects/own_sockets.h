/* Which Unix sockets a world's commands may reach by path: those bound in its network namespace, and those the host shares. */
#ifndef SUBSTRATE_NOTIFY_CONNECTS_OWN_SOCKETS_H
#define SUBSTRATE_NOTIFY_CONNECTS_OWN_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* SETUP: the path of a shared socket, as the world sees it. NULL, or what is wrong with it. */
const char *own_sockets_share(const uint8_t *path, size_t length);
/* In the finished world, before any command: remembers the inodes of the shared sockets and opens the kernel's list of sockets. */
void own_sockets_open(void);
/* Whether the socket file behind `file`, opened with O_PATH, may be reached. `stat` is its fstat(2). */
bool own_sockets_reachable(int file, const struct stat *stat);

#endif
