#define _GNU_SOURCE
#include "outer/namespaces.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/credentials.h"
#include "lib/failure.h"

/* User namespaces in a world at once, where commands may make them: a browser has one for each of its processes. */
#define MOST_NESTED "256"

static void write_text(int directory, const char *path, const char *text) {
  int fd = openat(directory, path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) fail_world("write", path, errno);
  if (write(fd, text, strlen(text)) != (ssize_t)strlen(text)) fail_world("write", path, errno);
  if (close(fd) < 0) fail_world("write", path, errno);
}

static void write_identity(const char *path, uint32_t id) {
  char line[64];
  snprintf(line, sizeof line, "%u %u 1", id, id);
  write_text(AT_FDCWD, path, line);
}

/* Queue length for telemetry datagrams. The default of ten (unix(7)) loses messages of a program that sends
   more in a row. Kernels that refuse keep ten. */
#define REPORTS_QUEUE "sys/net/unix/max_dgram_qlen"
#define REPORTS_WAITING "512"

/* The lowest port that needs no capability (ip(7)): as on the host, where root listens on any; a new network begins at 1024. Always above
   the name server's in the world, which takes no look-up of another command from it: UDP sockets with SO_REUSEADDR share a port. */
#define PORTS "sys/net/ipv4/ip_unprivileged_port_start"
#define ABOVE_NAME_SERVER 54
static char lowest_port[24];

/* A kernel that refuses keeps its own value: what is set here is no wall. */
static void set_network(int proc, const char *path, const char *text) {
  int fd = openat(proc, path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  ssize_t written = write(fd, text, strlen(text));
  (void)written;
  close(fd);
}

static void set_networks(const struct setup *setup, int proc) {
  if (setup->reports == 1) set_network(proc, REPORTS_QUEUE, REPORTS_WAITING);
  set_network(proc, PORTS, lowest_port);
}

static void note_lowest_port(const struct setup *setup) {
  char text[sizeof lowest_port] = "1024";
  int fd = setup->uid == 0 ? -1 : open("/proc/" PORTS, O_RDONLY | O_CLOEXEC);
  if (fd >= 0 && read(fd, text, sizeof text - 1) < 0) strcpy(text, "1024");
  if (fd >= 0) close(fd);
  long port = setup->uid == 0 ? 0 : strtol(text, NULL, 10);
  snprintf(lowest_port, sizeof lowest_port, "%ld", port < ABOVE_NAME_SERVER ? ABOVE_NAME_SERVER : port);
}

static int open_namespace(uint64_t pid, const char *name) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%llu/ns/%s", (unsigned long long)pid, name);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail_world("join network", path, errno);
  return fd;
}

/* Joins a network namespace, and first its user namespace. The user namespace unshared afterwards is below
   the network's owner: a command that gets capabilities there has no power over rules and addresses. */
static void join_network(const struct setup *setup) {
  int net = open_namespace(setup->network, "net");
  if ((setup->namespaces & CLONE_NEWUSER) != 0) {
    int user = open_namespace(setup->network, "user");
    /* Open both first: after the first setns(2) this process counts as another user. */
    if (setns(user, CLONE_NEWUSER) < 0) fail_world("join network", "user", errno);
    close(user);
  }
  if (setns(net, CLONE_NEWNET) < 0) fail_world("join network", "net", errno);
  close(net);
  /* Write here: the user namespace below, unshared next, has no permission. */
  int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (proc < 0) fail_world("join network", "/proc", errno);
  set_networks(setup, proc);
  close(proc);
}

void namespaces_enter(const struct setup *setup) {
  note_lowest_port(setup);
  if ((setup->namespaces & CLONE_NEWUSER) != 0) {
    if (geteuid() != setup->uid || getegid() != setup->gid) credentials_become(setup->uid, setup->gid);
  }
  if (setup->network != 0) join_network(setup);
  if ((setup->namespaces & CLONE_NEWUSER) != 0) {
    /* First and alone: the user namespace grants the capabilities that the other namespaces require. */
    if (unshare(CLONE_NEWUSER) < 0) fail_world("unshare user", "", errno);
    /* The kernel takes an ordinary user's gid_map only after setgroups is denied (user_namespaces(7)). */
    write_text(AT_FDCWD, "/proc/self/setgroups", "deny");
    write_identity("/proc/self/gid_map", setup->gid);
    write_identity("/proc/self/uid_map", setup->uid);
  }
  if (unshare((int)(setup->namespaces & ~(uint64_t)CLONE_NEWUSER)) < 0) fail_world("unshare", "", errno);
}

static void loopback_up(void) {
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) fail_world("loopback", "lo", errno);
  struct ifreq request = {.ifr_name = "lo"};
  if (ioctl(fd, SIOCGIFFLAGS, &request) < 0) fail_world("loopback", "lo", errno);
  request.ifr_flags |= IFF_UP;
  if (ioctl(fd, SIOCSIFFLAGS, &request) < 0) fail_world("loopback", "lo", errno);
  close(fd);
}

void namespaces_prepare(const struct setup *setup, int proc_fd) {
  if (setup->hostname != NULL && sethostname(setup->hostname, strlen(setup->hostname)) < 0) {
    fail_world("hostname", setup->hostname, errno);
  }
  if ((setup->namespaces & CLONE_NEWNET) != 0) {
    loopback_up();
    set_networks(setup, proc_fd);
  }
  if ((setup->namespaces & CLONE_NEWUSER) != 0) {
    /* The limit belongs to this user namespace: the host's own stays. Without the limit every command could
       get all capabilities in a new namespace, and with them access to the kernel's mount and netfilter code.
       Write through the private procfs: a container's /proc/sys is often read-only. */
    write_text(proc_fd, "sys/user/max_user_namespaces", setup->nested == 0 ? "0" : MOST_NESTED);
  }
}
