#define _GNU_SOURCE
#include "lib/callers.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/credentials.h"
#include "lib/descriptors.h"
#include "lib/pidfd_info.h"

#define PAGE 4096

/* PID 1's folder in the world's own procfs: callers may not enter. */
static const char OURS[] = "/proc/1";

int callers_proc = -1;
bool callers_may_nest;

/* In PID 1's procfs "self" means PID 1; returns the rest of such a path. */
static const char *behind_self(const char *path) {
  static const char *const NAMES[] = {"/proc/self/", "/proc/thread-self/"};
  for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
    if (strncmp(path, NAMES[i], strlen(NAMES[i])) == 0) return path + strlen(NAMES[i]);
  }
  return NULL;
}

/* Opens a path without following magic links of procfs (ELOOP): `self` on such a path would be PID 1 instead
   of the caller. The only magic link followed is the caller's own place (open_own). */
static int open_plainly(int base, const char *path) {
  struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS};
  return (int)syscall(SYS_openat2, base, path, &how, sizeof how);
}

/* Opens a path below a folder of the caller; `place` is its name in procfs: cwd, root, fd or fd/N. */
static int open_own(const struct view *view, const char *place, size_t length, const char *rest) {
  char path[64];
  snprintf(path, sizeof path, "%d/%.*s", view->caller, (int)length, place);
  int own = openat(callers_proc, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (own < 0 && errno == EACCES && credentials_raise_reading()) {
    own = openat(callers_proc, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int error = errno;
    credentials_lower_reading();
    errno = error;
  }
  if (own < 0 || *rest == 0 || strcmp(rest, ".") == 0) return own;
  int fd = open_plainly(own, rest);
  return close_keeping_errno(own, fd);
}

bool callers_nested(pid_t caller) {
  char path[32];
  struct stat own, theirs;
  if (!callers_may_nest) return false;
  snprintf(path, sizeof path, "%d/ns/user", caller);
  if (fstatat(callers_proc, "self/ns/user", &own, 0) < 0 || fstatat(callers_proc, path, &theirs, 0) < 0) return true;
  return own.st_ino != theirs.st_ino || own.st_dev != theirs.st_dev;
}

/* Opens a path as if `root` were the root folder, without following magic links: `/proc` may be any procfs, or none.
   -1 with ELOOP also where a link leads to one. */
static int open_in(int root, const char *path) {
  while (*path == '/') path++;
  struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
  return (int)syscall(SYS_openat2, root, *path == 0 ? "." : path, &how, sizeof how);
}

static bool is_same_folder(int one, int other) {
  struct stat here, there;
  return fstat(one, &here) == 0 && fstat(other, &there) == 0 && here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

/* Opens a path below a folder, from the caller's root: `..` and absolute links must not lead past that root. ELOOP where
   the folder has no path from there. */
static int open_from(int root, int base, const char *rest) {
  static char top[PATH_MAX + 1], real[PATH_MAX + 1], path[2 * PATH_MAX + 2];
  bool known = callers_real(root, top) && callers_real(base, real);
  size_t length = strcmp(top, "/") == 0 ? 0 : strlen(top);
  bool below = known && strncmp(real, top, length) == 0 && (real[length] == '/' || real[length] == 0);
  int again = below ? open_in(root, real + length) : -1;
  bool same = again >= 0 && is_same_folder(again, base);
  if (again >= 0) close(again);
  if (!same) {
    errno = ELOOP;
    return -1;
  }
  snprintf(path, sizeof path, "%s/%s", real + length, rest);
  return open_in(root, path);
}

/* Opens a folder of a caller with another root or another mount namespace. */
static int open_nested(const struct view *view, const char *folder) {
  char place[64];
  snprintf(place, sizeof place, "%d/root", view->caller);
  int root = openat(callers_proc, place, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0 || folder[0] == '/') return close_keeping_errno(root, root < 0 ? -1 : open_in(root, folder));
  if (view->folder == AT_FDCWD) snprintf(place, sizeof place, "%d/cwd", view->caller);
  else snprintf(place, sizeof place, "%d/fd/%d", view->caller, view->folder);
  int own = view->base >= 0 ? view->base : openat(callers_proc, place, O_PATH | O_DIRECTORY | O_CLOEXEC);
  int fd = own < 0 ? -1 : open_from(root, own, folder);
  if (own != view->base) fd = close_keeping_errno(own, fd);
  return close_keeping_errno(root, fd);
}

/* The rest of a path after `/proc/N/`, with the process; NULL for other paths. */
static const char *behind_process(const char *path, pid_t *process) {
  int length = 0;
  if (sscanf(path, "/proc/%d/%n", process, &length) != 1 || length == 0 || *process <= 1) return NULL;
  return path + length;
}

/* Returns the length of the place's name in a path after `/proc/self/`. */
static size_t place_length(const char *path) {
  size_t length = strcspn(path, "/");
  bool numbered = length == 2 && memcmp(path, "fd", 2) == 0 && path[2] == '/';
  return numbered ? 3 + strcspn(path + 3, "/") : length;
}

ssize_t callers_read(pid_t caller, const struct iovec *here, const struct iovec *there, size_t count) {
  ssize_t got = process_vm_readv(caller, here, count, there, count, 0);
  if (got >= 0 || errno != EPERM || !credentials_raise_reading()) return got;
  got = process_vm_readv(caller, here, count, there, count, 0);
  int error = errno;
  credentials_lower_reading();
  errno = error;
  return got;
}

bool callers_memory(pid_t caller, uint64_t address, void *data, size_t length) {
  struct iovec here = {data, length}, there = {(void *)(uintptr_t)address, length};
  ssize_t got = callers_read(caller, &here, &there, 1);
  if (got >= 0 && got < (ssize_t)length) errno = EFAULT;
  return got == (ssize_t)length;
}

/* Reads page by page: the next page may not be mapped. */
ssize_t callers_string(pid_t caller, uint64_t address, char *text, size_t size) {
  size_t got = 0;
  while (got < size) {
    size_t part = PAGE - (address + got) % PAGE;
    if (part > size - got) part = size - got;
    if (!callers_memory(caller, address + got, text + got, part)) return -1;
    const char *end = memchr(text + got, 0, part);
    if (end != NULL) return end - text;
    got += part;
  }
  return (ssize_t)size;
}

bool callers_text(pid_t caller, uint64_t address, char text[PATH_MAX]) {
  ssize_t length = callers_string(caller, address, text, PATH_MAX);
  if (length == PATH_MAX) errno = ENAMETOOLONG;
  return length >= 0 && length < PATH_MAX;
}

bool callers_is_dots(const char *leaf) {
  return strcmp(leaf, ".") == 0 || strcmp(leaf, "..") == 0;
}

/* Splits a path and strips trailing slashes: returns the length of the folder part. -1: no leaf. */
static ssize_t split(char *text, const char **leaf) {
  size_t length = strlen(text);
  while (length > 1 && text[length - 1] == '/') text[--length] = 0;
  const char *slash = strrchr(text, '/');
  *leaf = slash == NULL ? text : slash + 1;
  if ((*leaf)[0] == 0) return -1;
  if (slash == NULL) return 0;
  return slash == text ? 1 : slash - text;
}

int callers_part(const struct view *view, char *text, const char **leaf) {
  ssize_t length = split(text, leaf);
  if (length < 0) return -1;
  char next = text[length];
  text[length] = 0;
  int fd = callers_open(view, text);
  text[length] = next;
  return fd;
}

int callers_open(const struct view *view, const char *folder) {
  char place[32];
  if (view->nested) return open_nested(view, folder);
  while (folder[0] == '/' && folder[1] == '/') folder++;
  struct view whose = *view;
  const char *own = behind_self(folder);
  if (own == NULL) own = behind_process(folder, &whose.caller);
  if (own != NULL) {
    size_t length = place_length(own);
    const char *rest = own + length + strspn(own + length, "/");
    return open_own(&whose, own, length, rest);
  }
  if (folder[0] == '/') return open_plainly(AT_FDCWD, folder);
  const char *rest = folder[0] == 0 ? "." : folder;
  if (view->base >= 0) return open_plainly(view->base, rest);
  if (view->folder == AT_FDCWD) return open_own(view, "cwd", 3, rest);
  int length = snprintf(place, sizeof place, "fd/%d", view->folder);
  return open_own(view, place, (size_t)length, rest);
}

bool callers_real(int fd, char real[PATH_MAX + 1]) {
  char link[32];
  snprintf(link, sizeof link, "self/fd/%d", fd);
  ssize_t length = readlinkat(callers_proc, link, real, PATH_MAX);
  if (length == PATH_MAX) errno = ENAMETOOLONG;
  real[length <= 0 || length == PATH_MAX ? 0 : length] = 0;
  return real[0] == '/';
}

/* Returns the rest of a path in PID 1's own procfs folder, NULL for other paths. */
static const char *behind_ours(const char *real) {
  const char *rest = real + strlen(OURS);
  return strncmp(real, OURS, strlen(OURS)) == 0 && (*rest == 0 || *rest == '/') ? rest : NULL;
}

int callers_settle(const struct view *view, int fd, char real[PATH_MAX + 1]) {
  static char path[PATH_MAX + 64];
  const char *rest = callers_real(fd, real) ? behind_ours(real) : "";
  /* What is called /proc/1 in another mount namespace is not PID 1's. */
  if (view->nested) rest = real[0] == '/' ? NULL : "";
  if (rest == NULL) return fd;
  close(fd);
  if (real[0] != '/') return -1;
  snprintf(path, sizeof path, "%d%s", view->caller, rest);
  fd = openat(callers_proc, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0 && callers_real(fd, real)) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

/* Returns the process of a thread: a thread that starts a program becomes the only thread, under the
   process's pid. 0: gone. */
static pid_t process_of(pid_t task) {
  char path[32], text[1024];
  int pid;
  snprintf(path, sizeof path, "%d/status", task);
  int fd = openat(callers_proc, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t length = read(fd, text, sizeof text - 1);
  close(fd);
  text[length < 0 ? 0 : length] = 0;
  const char *line = strstr(text, "\nTgid:");
  return line != NULL && sscanf(line, "\nTgid: %d", &pid) == 1 ? pid : 0;
}

/* Costs a fifth of reading procfs. Fails for a thread other than its process's first, which has no pidfd. */
static bool ask_kernel(pid_t task, struct caller *caller) {
  struct pidfd_process info = {.mask = PIDFD_PROCESS_IDS};
  int fd = (int)syscall(SYS_pidfd_open, task, 0);
  if (fd < 0) return false;
  bool told = ioctl(fd, PIDFD_PROCESS, &info) == 0 && (info.mask & PIDFD_PROCESS_IDS) != 0;
  close(fd);
  *caller = (struct caller){(pid_t)info.tgid, (pid_t)info.ppid, task};
  return told && info.tgid != 0;
}

/* Parses "12 (name) S 11 …": the name may contain any character, so search for the last bracket
   (proc_pid_stat(5)). */
static bool ask_procfs(pid_t task, struct caller *caller) {
  char path[32], text[512];
  snprintf(path, sizeof path, "%d/stat", task);
  int fd = openat(callers_proc, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t length = read(fd, text, sizeof text - 1);
  close(fd);
  if (length <= 0) return false;
  text[length] = 0;
  const char *rest = strrchr(text, ')');
  int parent, threads;
  /* Fields 4 and 20. */
  if (rest == NULL || sscanf(rest, ") %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d",
                             &parent, &threads) != 2) {
    return false;
  }
  pid_t pid = threads > 1 ? process_of(task) : task;
  *caller = (struct caller){pid, parent, task};
  return pid > 0;
}

bool callers_identify(pid_t task, struct caller *caller) {
  return ask_kernel(task, caller) || ask_procfs(task, caller);
}
