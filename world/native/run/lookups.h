/* Finds the socket that asked the world's name server. */
#ifndef SUBSTRATE_RUN_LOOKUPS_H
#define SUBSTRATE_RUN_LOOKUPS_H

#include <stdbool.h>
#include <stdint.h>

/* Returns the inode of the only socket of the world's network with this local port that is connected to a port 53, or to
   nothing; 0 without one, with several, or if the kernel does not tell. */
uint64_t lookups_inode(bool tcp, uint16_t port);

#endif
