/* Parts of a dial: the caller's socket, the given address, and the socket file behind the address. */
#ifndef SUBSTRATE_NOTIFY_CONNECTS_DIAL_PARTS_H
#define SUBSTRATE_NOTIFY_CONNECTS_DIAL_PARTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

struct dial_address {
  struct sockaddr_storage name;
  socklen_t length;
  int target; /* socket file at `name`, opened with O_PATH; -1: `name` is no path */
};

/* Duplicates a descriptor of the caller; -1 with errno. */
int dial_socket(pid_t task, int fd);
/* Reads the address once; in a path address, replaces the path by the socket file that the caller would
   reach. Returns 0 or the errno for the caller. `refused` receives the path of a socket from outside this
   world, or stays empty. */
int dial_address_read(pid_t task, uint64_t at, uint64_t length, struct dial_address *address,
                      char refused[sizeof(struct sockaddr_storage)]);

#endif
