/* Sockets that are born in the network namespace. All are close-on-exec; -1 with errno when one cannot be made. */
#ifndef SUBSTRATE_NETWORK_NETWORK_SOCKETS_H
#define SUBSTRATE_NETWORK_NETWORK_SOCKETS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

/* 127.0.0.53:53, where the world's resolv.conf points. */
int network_dns(int type);

/* Accepts on an address of the world, any of it when `address` is INADDR_ANY; port 0 is one that the kernel finds. */
int network_listen(uint32_t address, uint16_t port);

/* The port it has, in host order; 0 when unknown. */
uint16_t network_port(int fd);

/* Where a captured connection was to go: before the rules redirected it, or where it arrived. */
bool network_destination(int fd, bool redirected, struct sockaddr_in *destination);

/* To the world's localhost, IPv4 before IPv6. Waits a fifth of a second at most. */
int network_connect(uint16_t port);

/* The inode of the socket that dialled `destination` from `source`; 0 when it is gone. */
uint64_t network_inode(const struct sockaddr_in *source, const struct sockaddr_in *destination);

#endif
