#define _GNU_SOURCE
#include "last_folder.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "touched.h"

/* No look at a folder tells that one above it got another name. Where the world's own calls do that, none is the last one until
   it is done; somebody outside may do it unheard. */
#define FRESH_NS 10000000

static struct {
  int fd; /* -1: none */
  int process; /* its caller's folder in procfs */
  struct view view;
  int64_t until;
  uint64_t inode, mount;
  uint32_t major, minor;
  size_t length;
  char text[PATH_MAX]; /* as the caller named it */
  char real[PATH_MAX + 1];
} last = {.fd = -1, .process = -1};

void last_folder_close(int fd) {
  if (fd >= 0 && fd != last.fd) close(fd);
}

void last_folder_forget(void) {
  if (last.fd >= 0) close(last.fd);
  if (last.process >= 0) close(last.process);
  last.fd = last.process = -1;
}

/* The tick of a timer: to ask for it costs nothing. */
static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool look(int folder, const char *path, int flags, struct statx *status) {
  return statx(folder, path, flags, STATX_INO | STATX_MNT_ID, status) == 0 && (status->stx_mask & STATX_MNT_ID) != 0;
}

/* What that text leads its caller to now. */
static bool look_from(const struct view *view, const char *text, struct statx *status) {
  char path[PATH_MAX + 32];
  if (text[0] == '/') return look(AT_FDCWD, text, 0, status);
  const char *slash = text[0] == 0 ? "" : "/";
  if (view->folder == AT_FDCWD) snprintf(path, sizeof path, "cwd%s%s", slash, text);
  else snprintf(path, sizeof path, "fd/%d%s%s", view->folder, slash, text);
  return look(last.process, path, 0, status);
}

static bool is_last(const struct view *view, const char *text, size_t length) {
  struct statx status;
  if (last.fd < 0 || last.view.caller != view->caller || last.view.folder != view->folder) return false;
  if (last.length != length || memcmp(last.text, text, length) != 0 || now_ns() > last.until) return false;
  return look_from(view, last.text, &status) && status.stx_ino == last.inode && status.stx_mnt_id == last.mount &&
         status.stx_dev_major == last.major && status.stx_dev_minor == last.minor;
}

/* What procfs calls a folder is another one for each who asks: of `/proc/self/cwd` a look would tell where we are. */
static bool is_in_procfs(const char *path) {
  return strncmp(path, "/proc", 5) == 0;
}

static void keep(const struct view *view, const char *text, size_t length, int fd, const char *real) {
  char name[16];
  struct statx status;
  last_folder_forget();
  if (touched_moving() || is_in_procfs(text) || is_in_procfs(real) || !look(fd, "", AT_EMPTY_PATH, &status)) return;
  snprintf(name, sizeof name, "%d", view->caller);
  last.process = openat(callers_proc, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (last.process < 0) return;
  last.fd = fd;
  last.view = *view;
  last.until = now_ns() + FRESH_NS;
  last.inode = status.stx_ino;
  last.mount = status.stx_mnt_id;
  last.major = status.stx_dev_major;
  last.minor = status.stx_dev_minor;
  last.length = length;
  memcpy(last.text, text, length);
  last.text[length] = 0;
  strcpy(last.real, real);
}

int last_folder_part(const struct view *view, char *text, const char **leaf, char real[PATH_MAX + 1], bool *settled) {
  ssize_t length = callers_split(text, leaf);
  *settled = true;
  if (length < 0) return -1;
  bool own = view->base < 0;
  if (own && is_last(view, text, (size_t)length)) {
    strcpy(real, last.real);
    return last.fd;
  }
  int fd = callers_part(view, text, leaf);
  if (fd < 0) return -1;
  fd = callers_settle(view, fd, real);
  *settled = fd >= 0;
  if (fd >= 0 && own) keep(view, text, (size_t)length, fd, real);
  return fd;
}
