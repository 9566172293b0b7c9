/* What a dial is made of: the caller's socket, the address that it gave, and the socket file that the address leads to. */
#ifndef SUBSTRATE_NOTIFY_CONNECTS_DIAL_PARTS_H
#define SUBSTRATE_NOTIFY_CONNECTS_DIAL_PARTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

struct dial_address {
  struct sockaddr_storage name;
  socklen_t length;
  int target; /* the socket file that `name` leads to, opened with O_PATH; -1: `name` is no path */
};

/* A duplicate of a descriptor of the caller's; -1 with errno. */
int dial_socket(pid_t task, int fd);
/* Reads the address once, and where it is a path replaces it by the socket file that the path leads the caller to. 0, or the
   errno for the caller; `refused` is then the path of a socket that is not this world's, or empty. */
int dial_address_read(pid_t task, uint64_t at, uint64_t length, struct dial_address *address,
                      char refused[sizeof(struct sockaddr_storage)]);

#endif
