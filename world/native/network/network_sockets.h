/* Sockets created in the network namespace. All are close-on-exec; -1 with errno on failure. */
#ifndef SUBSTRATE_NETWORK_NETWORK_SOCKETS_H
#define SUBSTRATE_NETWORK_NETWORK_SOCKETS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

/* Most connections that wait on a listener: the kernel's default limit (net.core.somaxconn). */
#define NETWORK_BACKLOG 4096

/* Opens 127.0.0.53:53, the name server in the world's resolv.conf. */
int network_dns(int type);

/* Listens on an address of the world, or on all with INADDR_ANY; port 0: chosen by the kernel. */
int network_listen(uint32_t address, uint16_t port);

/* Returns the socket's port in host order; 0 when unknown. */
uint16_t network_port(int fd);

/* Reads the intended destination of a captured connection: the address before redirection, or the address of
   arrival. */
bool network_destination(int fd, bool redirected, struct sockaddr_in *destination);

/* Connects to the world's localhost, IPv4 before IPv6. Waits at most a fifth of a second. */
int network_connect(uint16_t port);

/* Returns the inode of the socket that connected `source` to `destination`; 0 when gone. */
uint64_t network_inode(const struct sockaddr_in *source, const struct sockaddr_in *destination);

#endif
