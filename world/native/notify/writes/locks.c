#define _GNU_SOURCE
#include "notify/writes/locks.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/callers.h"
#include "notify/notices.h"

/* Lock files that exist at once. The oldest is forgotten first: then only a person can remove that file. */
#define OWN_MAX 64

/* The birth time tells a later file with the same inode number apart. */
struct made {
  uint32_t major, minor;
  uint64_t inode;
  struct statx_timestamp born;
};

static struct made own[OWN_MAX];
static unsigned next;

static bool identify(int folder, const char *leaf, int flags, struct made *made) {
  struct statx status;
  memset(made, 0, sizeof *made);
  if (statx(folder, leaf, flags | AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME, &status) < 0) return false;
  made->major = status.stx_dev_major;
  made->minor = status.stx_dev_minor;
  made->inode = status.stx_ino;
  made->born.tv_sec = status.stx_btime.tv_sec;
  made->born.tv_nsec = status.stx_btime.tv_nsec;
  return true;
}

static struct made *find(const struct made *made) {
  for (unsigned i = 0; i < OWN_MAX; i++) {
    if (made->inode != 0 && memcmp(&own[i], made, sizeof *made) == 0) return &own[i];
  }
  return NULL;
}

bool lock_is_own(int folder, const char *leaf) {
  struct made made;
  return identify(folder, leaf, 0, &made) && find(&made) != NULL;
}

int lock_remove(int folder, const char *leaf) {
  struct made made;
  struct made *known = identify(folder, leaf, 0, &made) ? find(&made) : NULL;
  if (known == NULL) return -1;
  memset(known, 0, sizeof *known);
  return unlinkat(folder, leaf, 0);
}

/* Removes a link, FIFO or socket. A person's git makes no lock file while it is there. */
static int remove_other(const struct lookup *place) {
  struct stat now;
  if (lstat(place->refused_path, &now) < 0) return -1;
  if (now.st_dev == place->stat.st_dev && now.st_ino == place->stat.st_ino && !S_ISREG(now.st_mode)) return unlink(place->refused_path);
  errno = EBUSY;
  return -1;
}

/* Reads what open(2) and its like ask for. False: another call. */
static bool asks_to_open(const struct seccomp_notif *notice, uint64_t *flags, uint64_t *mode) {
  const __u64 *args = notice->data.args;
  struct open_how how;
  switch (notice->data.nr) {
#ifdef SYS_open
    case SYS_open:
      *flags = (uint32_t)args[1];
      *mode = args[2];
      return true;
    case SYS_creat:
      *flags = O_CREAT | O_WRONLY | O_TRUNC;
      *mode = args[1];
      return true;
#endif
    case SYS_openat:
      *flags = (uint32_t)args[2];
      *mode = args[3];
      return true;
    case SYS_openat2:
      /* The thread may write other flags after the look-up: these here count, for PID 1 opens the file. */
      if (!callers_memory((pid_t)notice->pid, args[2], &how, sizeof how)) return false;
      *flags = how.flags;
      *mode = how.mode;
      return true;
    default:
      return false;
  }
}

static bool is_call(const struct seccomp_notif *notice, int with_folder, int without) {
  return notice->data.nr == with_folder || notice->data.nr == without;
}

/* The number of a call that this architecture may lack. */
#ifdef SYS_open
#define OLD(call) call
#else
#define OLD(call) (-1)
#endif

static mode_t mask_of(pid_t caller) {
  char path[32], text[512];
  unsigned mask = 077;
  snprintf(path, sizeof path, "%d/status", caller);
  int fd = openat(callers_proc, path, O_RDONLY | O_CLOEXEC);
  ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (fd >= 0) close(fd);
  text[length < 0 ? 0 : length] = 0;
  const char *line = strstr(text, "\nUmask:");
  if (line != NULL) sscanf(line, "\nUmask: %o", &mask);
  return (mode_t)mask;
}

/* The path was read with every link resolved: a link there now is another's. A FIFO that has come there since must not make
   PID 1 wait for its other end. */
static int open_as(const char *path, uint64_t flags, mode_t mode) {
  struct open_how how = {.flags = flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, .mode = mode, .resolve = RESOLVE_NO_SYMLINKS};
  int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
  if (fd >= 0 && (flags & O_NONBLOCK) == 0) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  return fd;
}

static enum lock_answer refuse(int listener, const struct seccomp_notif *notice, struct lookup *place, int error, bool tell) {
  if (tell) place->refused = error;
  notice_answer(listener, notice->id, error);
  return LOCK_REFUSED;
}

/* Gives the caller its own descriptor of the open file. */
static enum lock_answer give(int listener, const struct seccomp_notif *notice, int fd, uint64_t flags) {
  struct seccomp_notif_addfd order = {.id = notice->id, .srcfd = (uint32_t)fd, .newfd_flags = (uint32_t)(flags & O_CLOEXEC)};
  int given = ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &order);
  int error = given < 0 ? errno : 0;
  close(fd);
  notice_return(listener, notice->id, given < 0 ? 0 : given, error);
  return given < 0 ? LOCK_REFUSED : LOCK_DONE;
}

static enum lock_answer make(int listener, const struct seccomp_notif *notice, struct lookup *place, uint64_t flags, uint64_t mode) {
  mode_t allowed = (mode_t)(mode & 0777) & ~mask_of((pid_t)notice->pid);
  if (!notice_waits(listener, notice->id)) return LOCK_REFUSED;
  mode_t before = umask(0);
  int fd = open_as(place->refused_path, (flags | O_EXCL) & ~(uint64_t)O_TRUNC, allowed);
  int error = fd < 0 ? errno : 0;
  umask(before);
  if (fd < 0) return refuse(listener, notice, place, error, false);
  if (identify(fd, "", AT_EMPTY_PATH, &own[next])) next = (next + 1) % OWN_MAX;
  return give(listener, notice, fd, flags);
}

static enum lock_answer open_again(int listener, const struct seccomp_notif *notice, struct lookup *place, uint64_t flags) {
  struct made made;
  int fd = open_as(place->refused_path, flags & ~(uint64_t)(O_CREAT | O_TRUNC), 0);
  int error = fd < 0 ? errno : EROFS;
  bool known = fd >= 0 && identify(fd, "", AT_EMPTY_PATH, &made) && find(&made) != NULL;
  if (known && ((flags & O_TRUNC) == 0 || ftruncate(fd, 0) == 0)) return give(listener, notice, fd, flags);
  if (fd >= 0) close(fd);
  return refuse(listener, notice, place, error, error == EROFS);
}

static enum lock_answer serve_open(int listener, const struct seccomp_notif *notice, struct lookup *place, uint64_t flags,
                                   uint64_t mode) {
  bool makes = (flags & O_CREAT) != 0;
  if (place->exists && !S_ISREG(place->stat.st_mode)) {
    if (makes && (flags & O_EXCL) != 0) return refuse(listener, notice, place, EEXIST, false);
    if (S_ISLNK(place->stat.st_mode) && (flags & O_PATH) == 0) return refuse(listener, notice, place, ELOOP, false);
    /* The kernel would look the name up anew: another file there by then, perhaps a person's, would be written to or made. */
    bool writes = makes || (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0;
    return writes && (flags & O_PATH) == 0 ? refuse(listener, notice, place, EBUSY, true) : LOCK_NONE;
  }
  if (makes && (!place->exists || (flags & O_EXCL) != 0)) return make(listener, notice, place, flags, mode);
  return place->exists ? open_again(listener, notice, place, flags) : refuse(listener, notice, place, ENOENT, false);
}

static enum lock_answer serve_removal(int listener, const struct seccomp_notif *notice, struct lookup *place) {
  if (!place->exists) return refuse(listener, notice, place, ENOENT, false);
  bool regular = S_ISREG(place->stat.st_mode);
  if (S_ISDIR(place->stat.st_mode)) {
    /* rmdir(2) and its like remove no file that has come there since. */
    bool removes_folders = notice->data.nr == SYS_unlinkat && (notice->data.args[2] & AT_REMOVEDIR) != 0;
    return removes_folders ? LOCK_NONE : refuse(listener, notice, place, EISDIR, false);
  }
  /* A name that commands may not remove is refused as any other such name (notify/writes/record.c). */
  if (!regular && place->held) return LOCK_NONE;
  if (regular && !lock_is_own(AT_FDCWD, place->refused_path)) return refuse(listener, notice, place, EBUSY, true);
  if (!notice_waits(listener, notice->id)) return LOCK_REFUSED;
  int error = (regular ? lock_remove(AT_FDCWD, place->refused_path) : remove_other(place)) < 0 ? errno : 0;
  notice_return(listener, notice->id, 0, error);
  return LOCK_DONE;
}

enum lock_answer lock_serve(int listener, const struct seccomp_notif *notice, struct lookup *places, int count) {
  struct lookup *place = NULL;
  for (int i = 0; i < count && place == NULL; i++) {
    if (places[i].lock) place = &places[i];
  }
  if (place == NULL || callers_nested((pid_t)notice->pid)) return LOCK_NONE;
  uint64_t flags = 0, mode = 0;
  if (asks_to_open(notice, &flags, &mode)) return serve_open(listener, notice, place, flags, mode);
  if (is_call(notice, SYS_unlinkat, OLD(SYS_unlink))) return serve_removal(listener, notice, place);
  if (is_call(notice, SYS_linkat, OLD(SYS_link))) return refuse(listener, notice, place, EXDEV, false);
  if (notice->data.nr == SYS_truncate) return refuse(listener, notice, place, EROFS, true);
  /* The rename by which git commits its own lock file is the broker's (seals/replacements.h). */
  if (count == 2 && !is_call(notice, SYS_symlinkat, OLD(SYS_symlink))) return refuse(listener, notice, place, EBUSY, true);
  return LOCK_NONE;
}
