#define _GNU_SOURCE
#include "run/lookups.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#define NAMES_PORT 53

struct search {
  uint16_t port;
  uint64_t inode; /* 0: none found */
  bool several;
};

static void consider(struct search *search, const struct inet_diag_msg *found) {
  uint16_t to = ntohs(found->id.idiag_dport);
  if (ntohs(found->id.idiag_sport) != search->port || found->idiag_inode == 0) return;
  if (to != 0 && to != NAMES_PORT) return;
  search->several = search->several || (search->inode != 0 && search->inode != found->idiag_inode);
  search->inode = found->idiag_inode;
}

/* 1: more parts follow, 0: last part, -1: the kernel refuses. */
static int read_part(int kernel, struct search *search) {
  static union {
    struct nlmsghdr header;
    char space[32 * 1024];
  } part;
  ssize_t length = recv(kernel, &part, sizeof part, MSG_DONTWAIT);
  if (length < 0) return errno == EINTR ? 1 : -1;
  for (struct nlmsghdr *message = &part.header; NLMSG_OK(message, length); message = NLMSG_NEXT(message, length)) {
    if (message->nlmsg_type == NLMSG_DONE) return 0;
    if (message->nlmsg_type == NLMSG_ERROR) return -1;
    if (message->nlmsg_type == SOCK_DIAG_BY_FAMILY) consider(search, NLMSG_DATA(message));
  }
  return 1;
}

/* An exact lookup would need the socket's own address, and unconnected sockets have none (sock_diag(7)). */
static bool search_family(int kernel, uint8_t family, bool tcp, struct search *search) {
  struct {
    struct nlmsghdr header;
    struct inet_diag_req_v2 wanted;
  } request = {
      .header = {.nlmsg_len = sizeof request,
                 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
      .wanted = {.sdiag_family = family, .sdiag_protocol = tcp ? IPPROTO_TCP : IPPROTO_UDP, .idiag_states = ~0U},
  };
  int more = send(kernel, &request, sizeof request, 0) < 0 ? -1 : 1;
  while (more == 1) more = read_part(kernel, search);
  return more == 0;
}

uint64_t lookups_inode(bool tcp, uint16_t port) {
  struct search search = {.port = port};
  int kernel = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (kernel < 0) return 0;
  bool complete = search_family(kernel, AF_INET, tcp, &search) && search_family(kernel, AF_INET6, tcp, &search);
  close(kernel);
  return complete && !search.several ? search.inode : 0;
}
