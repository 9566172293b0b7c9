#define _GNU_SOURCE
#include "network/network_space.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/descriptors.h"

#define KEPT ((1U << CAP_NET_ADMIN) | (1U << CAP_NET_BIND_SERVICE))
/* The first device of every network namespace (net/core/dev.c, LOOPBACK_IFINDEX). */
#define LOOPBACK_INDEX 1
/* OWN in world/network/rules.ts. */
#define OWN_ADDRESS 0xc613fffe /* 198.19.255.254 */

static int write_text(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t count = write(fd, text, strlen(text));
  close_keeping_errno(fd, 0);
  return count == (ssize_t)strlen(text) ? 0 : -1;
}

static int map_identity(const char *path, unsigned id) {
  char line[64];
  snprintf(line, sizeof line, "%u %u 1", id, id);
  return write_text(path, line);
}

static const char *unshare_network(bool *nested) {
  unsigned uid = geteuid();
  unsigned gid = getegid();
  *nested = false;
  if (unshare(CLONE_NEWNET) == 0) return NULL;
  if (errno != EPERM) return "unshare net";
  if (unshare(CLONE_NEWUSER) < 0) return "unshare user";
  *nested = true;
  if (write_text("/proc/self/setgroups", "deny") < 0) return "write setgroups";
  if (map_identity("/proc/self/gid_map", gid) < 0) return "write gid_map";
  if (map_identity("/proc/self/uid_map", uid) < 0) return "write uid_map";
  return unshare(CLONE_NEWNET) < 0 ? "unshare net" : NULL;
}

static const char *loopback_up(void) {
  struct ifreq request = {.ifr_name = "lo"};
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return "loopback";
  bool failed = ioctl(fd, SIOCGIFFLAGS, &request) < 0;
  request.ifr_flags |= IFF_UP;
  failed = failed || ioctl(fd, SIOCSIFFLAGS, &request) < 0;
  close_keeping_errno(fd, 0);
  return failed ? "loopback" : NULL;
}

static const char *ask_kernel(const void *request, size_t size, const char *what) {
  struct {
    struct nlmsghdr header;
    struct nlmsgerr answer;
  } reply;
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return what;
  ssize_t got = send(fd, request, size, 0) < 0 ? -1 : recv(fd, &reply, sizeof reply, 0);
  close_keeping_errno(fd, 0);
  if (got < (ssize_t)NLMSG_LENGTH(sizeof(struct nlmsgerr))) return what;
  errno = -reply.answer.error;
  return reply.header.nlmsg_type == NLMSG_ERROR && errno == 0 ? NULL : what;
}

/* `ip addr add 198.19.255.254/32 dev lo`: with only 127.0.0.0/8 addresses, getaddrinfo(3) with AI_ADDRCONFIG
   finds no IPv4. */
static const char *own_address(void) {
  struct {
    struct nlmsghdr header;
    struct ifaddrmsg message;
    struct rtattr attribute;
    uint32_t address;
  } request = {
      .header = {.nlmsg_len = sizeof request,
                 .nlmsg_type = RTM_NEWADDR,
                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK},
      .message = {.ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_scope = RT_SCOPE_HOST, .ifa_index = LOOPBACK_INDEX},
      .attribute = {.rta_len = RTA_LENGTH(sizeof(uint32_t)), .rta_type = IFA_LOCAL},
      .address = htonl(OWN_ADDRESS),
  };
  return ask_kernel(&request, sizeof request, "address");
}

/* `ip route add local default dev lo table local`: every connection arrives here, and the rules decide on
   each. */
static const char *everything_is_local(void) {
  struct {
    struct nlmsghdr header;
    struct rtmsg route;
    struct rtattr attribute;
    uint32_t device;
  } request = {
      .header = {.nlmsg_len = sizeof request,
                 .nlmsg_type = RTM_NEWROUTE,
                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK},
      .route = {.rtm_family = AF_INET,
                .rtm_table = RT_TABLE_LOCAL,
                .rtm_protocol = RTPROT_BOOT,
                .rtm_scope = RT_SCOPE_HOST,
                .rtm_type = RTN_LOCAL},
      .attribute = {.rta_len = RTA_LENGTH(sizeof(uint32_t)), .rta_type = RTA_OIF},
      .device = LOOPBACK_INDEX,
  };
  return ask_kernel(&request, sizeof request, "route");
}

const char *network_space_make(bool *nested) {
  const char *wrong = unshare_network(nested);
  if (wrong == NULL) wrong = loopback_up();
  if (wrong == NULL) wrong = own_address();
  return wrong == NULL ? everything_is_local() : wrong;
}

const char *network_space_settle(void) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct sets[2] = {{.effective = KEPT, .permitted = KEPT, .inheritable = KEPT}, {0}};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return "no_new_privs";
  if (syscall(SYS_capset, &header, sets) < 0) return "capset";
  /* An ordinary user's child processes get only ambient capabilities. */
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_ADMIN, 0, 0) < 0) return "ambient";
  return NULL;
}
