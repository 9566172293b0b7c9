#define _GNU_SOURCE
#include "notify/starts/images.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "lib/callers.h"

/* Files known not to be scripts. Only files that commands cannot write: a shared mapping changes a file
   without a new ctime. */
#define KNOWN 256
/* A file changed within this time may change again without a new ctime: the kernel's file clock is coarse. */
#define FRESH_NS 50000000

#define TO_READ (O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

static struct {
  dev_t device;
  ino_t inode;
  off_t size;
  struct timespec changed;
} known[KNOWN];

static enum image_found unknown(struct image *image, const char *why) {
  image->unknown = why;
  return IMAGE_UNKNOWN;
}

static enum image_found missing(struct image *image, int error) {
  image->error = error;
  return IMAGE_MISSING;
}

/* Classifies a failed open of a folder: either the call must fail too, or PID 1 itself lacks a resource. */
static enum image_found no_folder(struct image *image, bool nested) {
  /* A caller in a user namespace of its own may enter folders that PID 1 may not. */
  if (nested && errno == EACCES) return unknown(image, "its folder cannot be opened");
  if (errno == ELOOP) return unknown(image, "its path leads through links in /proc");
  bool ours = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOSYS;
  return ours ? unknown(image, "its folder cannot be opened") : missing(image, errno == 0 ? ENOENT : errno);
}

bool image_is_settled(const struct image *image) {
  const struct stat *stat = &image->stat;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  int64_t age = (int64_t)(now.tv_sec - stat->st_ctim.tv_sec) * 1000000000 + now.tv_nsec - stat->st_ctim.tv_nsec;
  return age > FRESH_NS;
}

static size_t slot_of(const struct stat *stat) {
  return (size_t)(stat->st_ino ^ stat->st_dev * 31) % KNOWN;
}

static bool recall(struct image *image) {
  const struct stat *stat = &image->stat;
  size_t slot = slot_of(stat);
  if (known[slot].inode != stat->st_ino || known[slot].device != stat->st_dev || known[slot].size != stat->st_size ||
      memcmp(&known[slot].changed, &stat->st_ctim, sizeof stat->st_ctim) != 0) {
    return false;
  }
  image->writable = false;
  return true;
}

static void remember(const struct image *image) {
  const struct stat *stat = &image->stat;
  if (!image_is_settled(image)) return;
  size_t slot = slot_of(stat);
  known[slot].inode = stat->st_ino;
  known[slot].device = stat->st_dev;
  known[slot].size = stat->st_size;
  known[slot].changed = stat->st_ctim;
}

/* Handles an executable file without read permission. A file that commands could not have created counts as
   the program of its name. */
static enum image_found closed(struct image *image, int folder, const char *leaf) {
  struct statvfs mount;
  int file = openat(folder, leaf, O_PATH | O_CLOEXEC);
  if (file < 0) return unknown(image, "its file cannot be read");
  image->writable = fstatvfs(file, &mount) < 0 || (mount.f_flag & ST_RDONLY) == 0;
  bool theirs = fstat(file, &image->stat) < 0 || image->stat.st_uid == geteuid();
  close(file);
  return image->writable && theirs ? unknown(image, "its file cannot be read") : IMAGE_FOUND;
}

/* Reads the file's first bytes. */
static enum image_found read_head(struct image *image, int folder, const char *leaf, int flags) {
  struct statvfs mount;
  int fd = openat(folder, leaf, TO_READ | flags);
  if (fd < 0) return errno == EACCES ? closed(image, folder, leaf) : unknown(image, "its file cannot be read");
  ssize_t length = pread(fd, image->head, IMAGE_HEAD, 0);
  image->writable = fstatvfs(fd, &mount) < 0 || (mount.f_flag & ST_RDONLY) == 0;
  bool same = fstat(fd, &image->stat) == 0;
  close(fd);
  if (length < 0 || !same) return unknown(image, "its file cannot be read");
  image->head[length] = 0;
  image->head_length = length > 2 && image->head[0] == '#' && image->head[1] == '!' ? (size_t)length : 0;
  if (image->head_length == 0 && !image->writable) remember(image);
  return IMAGE_FOUND;
}

static bool may_run(const struct image *image) {
  mode_t mode = image->stat.st_mode;
  return S_ISREG(mode) && (image->mapped || (mode & (S_IXUSR | S_IXGRP | S_IXOTH)) != 0);
}

/* Takes a file opened with O_PATH. */
static enum image_found take_open(struct image *image, int file) {
  char link[32], real[PATH_MAX + 1];
  if (fstat(file, &image->stat) < 0 || !may_run(image)) {
    close(file);
    return missing(image, EACCES);
  }
  /* The procfs path of a memfd or a removed file leads nowhere. */
  if (image->stat.st_nlink > 0 && callers_real(file, real)) snprintf(image->path, sizeof image->path, "%s", real);
  snprintf(link, sizeof link, "self/fd/%d", file);
  enum image_found found = recall(image) ? IMAGE_FOUND : read_head(image, callers_proc, link, 0);
  close(file);
  return found;
}

static enum image_found take_descriptor(pid_t caller, int fd, struct image *image) {
  char link[64];
  snprintf(link, sizeof link, "%d/fd/%d", caller, fd);
  int file = openat(callers_proc, link, O_PATH | O_CLOEXEC);
  if (file >= 0) return take_open(image, file);
  return errno == ENOENT ? missing(image, EBADF) : unknown(image, "its file descriptor cannot be opened");
}

static bool is_procfs(int fd) {
  struct statfs filesystem;
  return fstatfs(fd, &filesystem) == 0 && filesystem.f_type == PROC_SUPER_MAGIC;
}

/* Resolves one step: `leaf` in the folder `fd`. Returns 1 for a link, with its target in `text`. */
static int look(struct image *image, int fd, const char *real, const char *leaf, bool follow, char text[PATH_MAX],
                enum image_found *found) {
  if (strlen(leaf) > NAME_MAX) {
    *found = missing(image, ENAMETOOLONG);
    return 0;
  }
  if (fstatat(fd, leaf, &image->stat, AT_SYMLINK_NOFOLLOW) < 0) {
    *found = missing(image, errno);
    return 0;
  }
  *found = missing(image, ELOOP);
  if (S_ISLNK(image->stat.st_mode)) {
    if (!follow) return 0;
    if (is_procfs(fd)) {
      /* /proc/N/fd/M and /proc/N/exe lead to the file itself, whatever the link text says. */
      int file = openat(fd, leaf, O_PATH | O_CLOEXEC);
      *found = file < 0 ? unknown(image, "a link in /proc cannot be followed") : take_open(image, file);
      return 0;
    }
    char target[PATH_MAX];
    ssize_t length = readlinkat(fd, leaf, target, sizeof target - 1);
    if (length <= 0) {
      *found = missing(image, ENOENT);
      return 0;
    }
    memcpy(text, target, (size_t)length);
    text[length] = 0;
    return 1;
  }
  *found = missing(image, EACCES);
  if (!may_run(image)) return 0;
  snprintf(image->path, sizeof image->path, "%s/%s", real[1] == 0 ? "" : real, leaf);
  *found = recall(image) ? IMAGE_FOUND : read_head(image, fd, leaf, O_NOFOLLOW);
  return 0;
}

/* Handles a name with a trailing slash: a folder, never a program. */
static enum image_found no_file(struct image *image, const struct view *view, const char *text) {
  int fd = callers_open(view, text);
  if (fd < 0) return missing(image, errno);
  close(fd);
  return missing(image, EACCES);
}

static enum image_found walk(struct image *image, struct view *view, bool follow) {
  static char text[PATH_MAX], real[PATH_MAX + 1];
  enum image_found found = IMAGE_MISSING;
  const char *leaf;
  memcpy(text, image->called, sizeof text);
  for (int links = 0; links < CALLERS_LINKS_MAX; links++) {
    size_t length = strlen(text);
    errno = 0;
    if (length == 0) return missing(image, ENOENT);
    if (text[length - 1] == '/') return no_file(image, view, text);
    int fd = callers_part(view, text, &leaf);
    if (fd < 0) return no_folder(image, view->nested);
    fd = callers_is_dots(leaf) ? (close(fd), -2) : callers_settle(view, fd, real);
    if (fd < 0) return fd == -2 ? missing(image, EACCES) : unknown(image, "its folder has no path");
    int more = look(image, fd, real, leaf, follow, text, &found);
    if (view->base >= 0) close(view->base);
    view->base = fd;
    if (!more) return found;
  }
  return missing(image, ELOOP);
}

/* Rules go by names, and in a mount namespace of its own a caller gives any file any name. So the file's name there must
   lead to the same file here. Every caller is checked: a folder opened in another namespace can be handed on. */
static enum image_found as_named_here(struct image *image, enum image_found found) {
  struct stat here;
  if (!callers_may_nest || found != IMAGE_FOUND || image->path[0] == 0) return found;
  bool same = lstat(image->path, &here) == 0 && here.st_dev == image->stat.st_dev && here.st_ino == image->stat.st_ino;
  return same ? found : unknown(image, "in its namespace the name stands for another file than in the world");
}

enum image_found image_find(pid_t caller, int folder, int flags, struct image *image) {
  /* The runner's procfs folder is closed to PID 1, as a process of another user namespace may look. */
  bool nested = !image->of_runner && callers_nested(caller);
  struct view view = {.caller = caller, .nested = nested, .base = -1, .folder = folder};
  image->path[0] = 0;
  image->head_length = 0;
  image->unknown = NULL;
  image->writable = true;
  if (image->called[0] == 0) {
    bool named = (flags & AT_EMPTY_PATH) == 0;
    if (named || folder == AT_FDCWD) return missing(image, named ? ENOENT : EACCES);
    return as_named_here(image, take_descriptor(caller, folder, image));
  }
  enum image_found found = walk(image, &view, (flags & AT_SYMLINK_NOFOLLOW) == 0);
  if (view.base >= 0) close(view.base);
  return as_named_here(image, found);
}

int image_open(const struct image *image) {
  struct stat stat;
  int fd = image->path[0] == 0 ? -1 : open(image->path, TO_READ | O_NOFOLLOW);
  if (fd < 0) return -1;
  if (fstat(fd, &stat) == 0 && stat.st_ino == image->stat.st_ino && stat.st_dev == image->stat.st_dev) return fd;
  close(fd);
  return -1;
}
