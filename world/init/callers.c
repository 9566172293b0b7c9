#define _GNU_SOURCE
#include "callers.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What is PID 1's in the world's own procfs: no caller may go there itself. */
static const char OURS[] = "/proc/1/";

int callers_proc = -1;

/* In our own procfs "self" is PID 1. */
static const char *behind_self(const char *path) {
  static const char *const NAMES[] = {"/proc/self/", "/proc/thread-self/"};
  for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
    if (strncmp(path, NAMES[i], strlen(NAMES[i])) == 0) return path + strlen(NAMES[i]);
  }
  return NULL;
}

/* What a magic link of procfs leads to is the caller's business: `self` on the way is PID 1 for us. So none is followed
   here (ELOOP), but the one that the caller's own place is named by. */
static int open_plainly(int base, const char *path) {
  struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS};
  return (int)syscall(SYS_openat2, base, path, &how, sizeof how);
}

/* `place` is what procfs calls a folder of the caller's: cwd, root, fd or fd/N. */
static int open_own(const struct view *view, const char *place, size_t length, const char *rest) {
  char path[64];
  snprintf(path, sizeof path, "%d/%.*s", view->caller, (int)length, place);
  int own = openat(callers_proc, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (own < 0 || *rest == 0 || strcmp(rest, ".") == 0) return own;
  int fd = open_plainly(own, rest);
  int error = errno;
  close(own);
  errno = error;
  return fd;
}

/* How much of a path behind `/proc/self/` names a place. */
static size_t place_length(const char *path) {
  size_t length = strcspn(path, "/");
  bool numbered = length == 2 && memcmp(path, "fd", 2) == 0 && path[2] == '/';
  return numbered ? 3 + strcspn(path + 3, "/") : length;
}

int callers_open(const struct view *view, const char *folder) {
  char place[32];
  const char *own = behind_self(folder);
  if (own != NULL) {
    size_t length = place_length(own);
    const char *rest = own + length + strspn(own + length, "/");
    return open_own(view, own, length, rest);
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
  real[length <= 0 || length == PATH_MAX ? 0 : length] = 0;
  return real[0] == '/';
}

int callers_settle(const struct view *view, int fd, char real[PATH_MAX + 1]) {
  static char path[PATH_MAX + 64];
  if (callers_real(fd, real) && strncmp(real, OURS, strlen(OURS)) != 0) return fd;
  close(fd);
  if (real[0] != '/') return -1;
  snprintf(path, sizeof path, "%d/%s", view->caller, real + strlen(OURS));
  fd = openat(callers_proc, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0 && callers_real(fd, real)) return fd;
  if (fd >= 0) close(fd);
  return -1;
}
