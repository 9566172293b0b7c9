#define _GNU_SOURCE
#include "network/network_sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netfilter_ipv4.h>
#include <linux/sock_diag.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <linux/netlink.h>
#include <unistd.h>

#include "lib/descriptors.h"

#define DNS_ADDRESS 0x7f000035 /* 127.0.0.53 */
#define DNS_PORT 53
#define CONNECT_MS 200

static int bound(int type, uint32_t address, uint16_t port) {
  struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(address)};
  int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int reuse = type == SOCK_STREAM;
  if (fd < 0) return -1;
  /* Allows listening again on a port with live connections (EADDRINUSE, tcp(7)). */
  if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse) < 0) return close_keeping_errno(fd, -1);
  return bind(fd, (struct sockaddr *)&name, sizeof name) < 0 ? close_keeping_errno(fd, -1) : fd;
}

static int listening(int fd) {
  if (fd < 0) return -1;
  return listen(fd, NETWORK_BACKLOG) < 0 ? close_keeping_errno(fd, -1) : fd;
}

int network_dns(int type) {
  int fd = bound(type, DNS_ADDRESS, DNS_PORT);
  return type == SOCK_STREAM ? listening(fd) : fd;
}

int network_listen(uint32_t address, uint16_t port) {
  return listening(bound(SOCK_STREAM, address, port));
}

uint16_t network_port(int fd) {
  struct sockaddr_in name;
  socklen_t length = sizeof name;
  return getsockname(fd, (struct sockaddr *)&name, &length) < 0 ? 0 : ntohs(name.sin_port);
}

bool network_destination(int fd, bool redirected, struct sockaddr_in *destination) {
  socklen_t length = sizeof *destination;
  if (!redirected) return getsockname(fd, (struct sockaddr *)destination, &length) == 0;
  return getsockopt(fd, IPPROTO_IP, SO_ORIGINAL_DST, destination, &length) == 0;
}

static int connect_to(const struct sockaddr *name, socklen_t length) {
  int error = 0;
  socklen_t size = sizeof error;
  int fd = socket(name->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  if (connect(fd, name, length) == 0) return fd;
  if (errno != EINPROGRESS) return close_keeping_errno(fd, -1);
  struct pollfd state = {.fd = fd, .events = POLLOUT};
  errno = ETIMEDOUT;
  if (poll(&state, 1, CONNECT_MS) != 1) return close_keeping_errno(fd, -1);
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0) {
    if (error == 0) return fd;
    errno = error;
  }
  return close_keeping_errno(fd, -1);
}

int network_connect(uint16_t port) {
  struct sockaddr_in four = {
      .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  int fd = connect_to((struct sockaddr *)&four, sizeof four);
  /* Some servers listen on ::1 alone. */
  return fd >= 0 ? fd : connect_to((struct sockaddr *)&six, sizeof six);
}

/* Looks a socket up by its own view of both addresses, which the rules do not change (sock_diag(7)). */
uint64_t network_inode(const struct sockaddr_in *source, const struct sockaddr_in *destination) {
  struct {
    struct nlmsghdr header;
    struct inet_diag_req_v2 wanted;
  } request = {
      .header = {.nlmsg_len = sizeof request, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST},
      .wanted = {.sdiag_family = AF_INET,
                 .sdiag_protocol = IPPROTO_TCP,
                 .idiag_states = ~0U,
                 .id = {.idiag_sport = source->sin_port,
                        .idiag_dport = destination->sin_port,
                        .idiag_src = {source->sin_addr.s_addr},
                        .idiag_dst = {destination->sin_addr.s_addr},
                        .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}},
  };
  union {
    struct nlmsghdr header;
    char space[4096];
  } reply;
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (fd < 0) return 0;
  ssize_t got = send(fd, &request, sizeof request, 0) < 0 ? -1 : recv(fd, &reply, sizeof reply, 0);
  close(fd);
  if (got < (ssize_t)NLMSG_LENGTH(sizeof(struct inet_diag_msg))) return 0;
  if (reply.header.nlmsg_type != SOCK_DIAG_BY_FAMILY) return 0;
  const struct inet_diag_msg *found = NLMSG_DATA(&reply.header);
  return found->idiag_inode;
}
