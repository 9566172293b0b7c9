#define _GNU_SOURCE
#include "notify/connects/dial_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/callers.h"
#include "lib/descriptors.h"
#include "notify/connects/own_sockets.h"

/* PIDFD_THREAD: Linux 6.9. */
#define OF_THREAD O_EXCL

#define PATH_AT offsetof(struct sockaddr_un, sun_path)

/* Before Linux 6.9 only processes have pidfds; open the thread's process instead: threads nearly always share
   descriptors. */
static int open_task(pid_t task) {
  struct caller caller;
  int pidfd = (int)syscall(SYS_pidfd_open, task, OF_THREAD);
  if (pidfd >= 0 || errno != EINVAL) return pidfd;
  if (!callers_identify(task, &caller)) {
    errno = ESRCH;
    return -1;
  }
  return (int)syscall(SYS_pidfd_open, caller.pid, 0);
}

int dial_socket(pid_t task, int fd) {
  int pidfd = open_task(task);
  if (pidfd < 0) return -1;
  int copy = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
  return close_keeping_errno(pidfd, copy);
}

/* Procfs links whose meaning depends on the reader, with their counterparts in the caller's procfs folder. */
static const struct {
  const char *name;
  const char *own;
} OWN[] = {
    {"/proc/self/", ""},
    {"/proc/thread-self/", ""},
    {"/dev/fd/", "fd/"},
};

/* Opens the file at the path of a caller with another root. A link as the last component is not followed, and so is
   refused. */
static int open_nested_target(pid_t task, const char *path) {
  char text[sizeof(struct sockaddr_un) + 1];
  const char *leaf;
  struct view view = {.caller = task, .nested = true, .base = -1, .folder = AT_FDCWD};
  snprintf(text, sizeof text, "%s", path);
  int folder = callers_part(&view, text, &leaf);
  if (folder < 0) return -1;
  return close_keeping_errno(folder, openat(folder, leaf, O_PATH | O_NOFOLLOW | O_CLOEXEC));
}

/* Opens the file at the caller's path, as the caller's own call would resolve the path. A path that resolves
   differently for PID 1 (a link to /proc/self) is harmless: PID 1 checks the file behind this descriptor and
   connects to the same file. */
static int open_target(pid_t task, const char *path) {
  char text[sizeof(struct sockaddr_un) + 32];
  if (callers_nested(task)) return open_nested_target(task, path);
  for (size_t i = 0; i < sizeof OWN / sizeof *OWN; i++) {
    size_t length = strlen(OWN[i].name);
    if (strncmp(path, OWN[i].name, length) != 0) continue;
    snprintf(text, sizeof text, "%d/%s%s", task, OWN[i].own, path + length);
    return openat(callers_proc, text, O_PATH | O_CLOEXEC);
  }
  if (path[0] == '/') return open(path, O_PATH | O_CLOEXEC);
  snprintf(text, sizeof text, "%d/cwd/%s", task, path);
  return openat(callers_proc, text, O_PATH | O_CLOEXEC);
}

/* A socket file bound outside this world gives ECONNREFUSED, as an unbound socket file does. */
static int judge(int target, bool *foreign) {
  struct stat stat;
  if (fstat(target, &stat) < 0) return errno;
  if (!S_ISSOCK(stat.st_mode)) return ECONNREFUSED;
  *foreign = !own_sockets_reachable(target, &stat);
  return *foreign ? ECONNREFUSED : 0;
}

/* An abstract name with its leading zero byte shown as '@', up to the next zero byte. */
static void show_abstract(const struct sockaddr_un *name, socklen_t length, char text[sizeof(struct sockaddr_storage)]) {
  size_t size = length - PATH_AT;
  text[0] = '@';
  memcpy(text + 1, name->sun_path + 1, size - 1);
  text[size] = 0;
}

int dial_address_read(pid_t task, uint64_t at, uint64_t length, struct dial_address *address,
                      char refused[sizeof(struct sockaddr_storage)]) {
  struct sockaddr_un *name = (struct sockaddr_un *)&address->name;
  char path[sizeof address->name] = "";
  bool foreign = false;
  refused[0] = 0;
  address->target = -1;
  address->length = (socklen_t)length;
  if ((int)length < 0 || (uint32_t)length > sizeof address->name) return EINVAL;
  memset(&address->name, 0, sizeof address->name);
  if ((uint32_t)length > 0 && !callers_memory(task, at, &address->name, (uint32_t)length)) {
    return errno == EPERM ? EPERM : EFAULT;
  }
  if (address->length <= PATH_AT || address->name.ss_family != AF_UNIX) return 0;
  if (name->sun_path[0] == 0 && !own_sockets_beside_hosts()) return 0;
  if (address->length > sizeof *name) return EINVAL;
  if (name->sun_path[0] == 0) {
    show_abstract(name, address->length, refused);
    return ECONNREFUSED;
  }
  memcpy(path, name->sun_path, address->length - PATH_AT);
  address->target = open_target(task, path);
  if (address->target < 0) return errno;
  int error = judge(address->target, &foreign);
  if (foreign) memcpy(refused, path, sizeof path);
  int text = snprintf(name->sun_path, sizeof name->sun_path, "/proc/self/fd/%d", address->target);
  address->length = (socklen_t)(PATH_AT + (size_t)text + 1);
  return error;
}
