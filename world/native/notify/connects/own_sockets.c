#define _GNU_SOURCE
#include "notify/connects/own_sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "lib/callers.h"
#include "lib/failure.h"

#define SHARED_MAX 16
/* Listening sockets known in the host's network namespace; the oldest is forgotten first, and then unreachable. */
#define LISTENING_MAX 65536

/* An inode in the kernel's numbers: the file system's device (s_dev) and the inode number (i_ino). */
struct inode {
  uint32_t device, number;
};

/* A shared socket stays open (O_PATH) as long as the world lives, so that its inode number cannot be
   reused. */
static struct {
  char path[PATH_MAX];
  int file; /* -1: no socket at `path` when the world was made */
  struct stat stat;
} *shared[SHARED_MAX];
static size_t shared_count;

static int kernel = -1; /* NETLINK_SOCK_DIAG, in the world's network namespace */
static uint32_t sequence;

/* Cookies (SO_COOKIE), which the kernel never uses twice; 0: a free place. */
static bool beside_hosts;
static uint64_t listening[LISTENING_MAX];
static size_t listening_next;

const char *own_sockets_share(const uint8_t *path, size_t length) {
  if (shared_count == SHARED_MAX) return "SETUP: too many SOCKET";
  if (length < 2 || length >= PATH_MAX || path[0] != '/' || memchr(path, 0, length) != NULL) return "SETUP: bad SOCKET";
  shared[shared_count] = calloc(1, sizeof *shared[0]);
  if (shared[shared_count] == NULL) fail_world("sockets", "", ENOMEM);
  memcpy(shared[shared_count++]->path, path, length);
  return NULL;
}

bool own_sockets_beside_hosts(void) { return beside_hosts; }

void own_sockets_add(int socket) {
  uint64_t cookie = 0;
  socklen_t length = sizeof cookie;
  if (getsockopt(socket, SOL_SOCKET, SO_COOKIE, &cookie, &length) < 0 || cookie == 0) return;
  for (size_t i = 0; i < LISTENING_MAX && listening[i] != 0; i++) {
    if (listening[i] == cookie) return;
  }
  listening[listening_next] = cookie;
  listening_next = (listening_next + 1) % LISTENING_MAX;
}

static bool is_listening(const struct unix_diag_msg *found) {
  uint64_t cookie = (uint64_t)found->udiag_cookie[1] << 32 | found->udiag_cookie[0];
  for (size_t i = 0; i < LISTENING_MAX && listening[i] != 0; i++) {
    if (listening[i] == cookie) return true;
  }
  return false;
}

void own_sockets_open(bool host_network) {
  beside_hosts = host_network;
  for (size_t i = 0; i < shared_count; i++) {
    shared[i]->file = open(shared[i]->path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (shared[i]->file < 0) continue;
    if (fstat(shared[i]->file, &shared[i]->stat) == 0 && S_ISSOCK(shared[i]->stat.st_mode)) continue;
    close(shared[i]->file);
    shared[i]->file = -1;
  }
  kernel = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (kernel < 0) fail_world("sockets", "sock_diag", errno);
}

static bool is_shared(const struct stat *stat) {
  for (size_t i = 0; i < shared_count; i++) {
    if (shared[i]->file < 0) continue;
    if (shared[i]->stat.st_dev == stat->st_dev && shared[i]->stat.st_ino == stat->st_ino) return true;
  }
  return false;
}

static bool is_bound_at(const struct nlmsghdr *message, struct inode wanted) {
  const struct unix_diag_msg *found = NLMSG_DATA(message);
  const char *at = (const char *)(found + 1), *end = (const char *)message + message->nlmsg_len;
  struct unix_diag_vfs bound;
  while (end - at >= NLA_HDRLEN) {
    struct nlattr attribute;
    memcpy(&attribute, at, sizeof attribute);
    if (attribute.nla_len < NLA_HDRLEN || attribute.nla_len > end - at) return false;
    if (attribute.nla_type == UNIX_DIAG_VFS && attribute.nla_len >= NLA_HDRLEN + sizeof bound) {
      memcpy(&bound, at + NLA_HDRLEN, sizeof bound);
      if (bound.udiag_vfs_ino != wanted.number || bound.udiag_vfs_dev != wanted.device) return false;
      return !beside_hosts || is_listening(found);
    }
    at += NLA_ALIGN(attribute.nla_len);
  }
  return false;
}

/* Reads a part of the answer. 1: more parts follow, 0: last part, -1: the kernel refuses. */
static int read_part(struct inode wanted, bool *found) {
  static union {
    struct nlmsghdr header;
    char space[32 * 1024];
  } part;
  ssize_t length = recv(kernel, &part, sizeof part, MSG_DONTWAIT);
  if (length < 0) return errno == EINTR ? 1 : -1;
  for (struct nlmsghdr *message = &part.header; NLMSG_OK(message, length); message = NLMSG_NEXT(message, length)) {
    if (message->nlmsg_seq != sequence) continue;
    if (message->nlmsg_type == NLMSG_DONE) return 0;
    if (message->nlmsg_type == NLMSG_ERROR) return -1;
    if (message->nlmsg_type == SOCK_DIAG_BY_FAMILY && is_bound_at(message, wanted)) *found = true;
  }
  return 1;
}

/* Searches all Unix sockets of the world's network namespace (sock_diag(7)) for a socket bound to this file.
   On a kernel without unix_diag no socket counts as this world's, and connecting by path fails. */
static bool is_bound_here(struct inode wanted) {
  struct {
    struct nlmsghdr header;
    struct unix_diag_req wanted;
  } request = {
      .header = {.nlmsg_len = sizeof request,
                 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
                 .nlmsg_seq = ++sequence},
      .wanted = {.sdiag_family = AF_UNIX, .udiag_states = ~0U, .udiag_show = UDIAG_SHOW_VFS},
  };
  bool found = false;
  int more = send(kernel, &request, sizeof request, 0) < 0 ? -1 : 1;
  while (more == 1) more = read_part(wanted, &found);
  return more == 0 && found;
}

static struct inode as_kernel_has(unsigned major_number, unsigned minor_number, uint64_t number) {
  return (struct inode){.device = major_number << 20 | minor_number, .number = (uint32_t)number};
}

/* Finds the device of a mount's file system (proc_pid_mountinfo(5)). */
static bool device_of_mount(int mount, unsigned *major_number, unsigned *minor_number) {
  char line[PATH_MAX];
  int id;
  bool found = false, begins = true; /* a line longer than the buffer comes in parts */
  int fd = openat(callers_proc, "self/mountinfo", O_RDONLY | O_CLOEXEC);
  FILE *table = fd < 0 ? NULL : fdopen(fd, "r");
  if (table == NULL) {
    if (fd >= 0) close(fd);
    return false;
  }
  while (!found && fgets(line, sizeof line, table) != NULL) {
    found = begins && sscanf(line, "%d %*d %u:%u ", &id, major_number, minor_number) == 3 && id == mount;
    begins = strchr(line, '\n') != NULL;
  }
  fclose(table);
  return found;
}

/* On btrfs and overlayfs, stat(2) shows other numbers than sock_diag(7); fdinfo and mountinfo have the
   kernel's. */
static bool read_inode(int file, const struct stat *stat, struct inode *inode) {
  char path[32], text[256];
  int mount;
  unsigned major_number, minor_number;
  unsigned long long number = stat->st_ino;
  snprintf(path, sizeof path, "self/fdinfo/%d", file);
  int fd = openat(callers_proc, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t length = read(fd, text, sizeof text - 1);
  close(fd);
  text[length < 0 ? 0 : length] = 0;
  const char *at_mount = strstr(text, "mnt_id:"), *at_inode = strstr(text, "\nino:");
  if (at_mount == NULL || sscanf(at_mount, "mnt_id: %d", &mount) != 1) return false;
  /* Absent before Linux 5.15. */
  if (at_inode != NULL && sscanf(at_inode, "\nino: %llu", &number) != 1) return false;
  if (!device_of_mount(mount, &major_number, &minor_number)) return false;
  *inode = as_kernel_has(major_number, minor_number, number);
  return true;
}

bool own_sockets_reachable(int file, const struct stat *stat) {
  if (is_shared(stat)) return true;
  struct inode shown = as_kernel_has(major(stat->st_dev), minor(stat->st_dev), stat->st_ino), inner;
  if (is_bound_here(shown)) return true;
  if (!read_inode(file, stat, &inner)) return false;
  if (inner.device == shown.device && inner.number == shown.number) return false;
  return is_bound_here(inner);
}
