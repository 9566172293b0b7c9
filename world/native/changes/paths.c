/* Paths in a tree that others may be changing: resolved step by step from descriptors, never through a
   link. */
#define _GNU_SOURCE
#include "changes/paths.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

void close_keeping_errno(int fd) {
  int error = errno;
  if (fd >= 0) close(fd);
  errno = error;
}

static int64_t nanoseconds(const struct timespec *time) {
  return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

static enum file_type type_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG: return TYPE_FILE;
    case S_IFDIR: return TYPE_FOLDER;
    case S_IFLNK: return TYPE_LINK;
    case S_IFIFO: return TYPE_PIPE;
    case S_IFSOCK: return TYPE_SOCKET;
    case S_IFCHR: return TYPE_CHARACTER;
    default: return TYPE_BLOCK;
  }
}

void sight_of(const struct stat *status, struct sight *sight) {
  *sight = (struct sight){.type = type_of(status->st_mode), .mode = status->st_mode, .size = status->st_size,
                          .mtime = nanoseconds(&status->st_mtim), .ctime = nanoseconds(&status->st_ctim),
                          .inode = status->st_ino, .links = status->st_nlink};
}

int sight_at(int folder, const char *name, struct sight *sight) {
  struct stat status;
  *sight = (struct sight){0};
  if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) == 0) sight_of(&status, sight);
  else if (errno != ENOENT) return -1;
  return 0;
}

void sight_write(struct text *text, const struct sight *sight) {
  if (sight->type == TYPE_NONE) text_field(text, "");
  else
    text_format(text, "%c %u %lld %lld %llu %lld %llu %lld %llu", (char)sight->type, sight->mode,
                (long long)sight->size, (long long)sight->mtime, (unsigned long long)sight->inode, (long long)sight->ctime,
                (unsigned long long)sight->links, (long long)sight->newest, (unsigned long long)sight->count);
}

bool sight_read(const char *text, struct sight *sight) {
  char type;
  long long size, mtime, ctime, newest;
  unsigned long long inode, links, count;
  *sight = (struct sight){0};
  if (*text == 0) return true;
  if (sscanf(text, "%c %u %lld %lld %llu %lld %llu %lld %llu", &type, &sight->mode, &size, &mtime, &inode, &ctime,
             &links, &newest, &count) != 9) {
    return false;
  }
  sight->type = (enum file_type)type;
  sight->size = size, sight->mtime = mtime, sight->ctime = ctime, sight->newest = newest;
  sight->inode = inode, sight->links = links, sight->count = count;
  return true;
}

static int open_step(int root, const char *path, int flags) {
  struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC),
                         .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV};
  for (;;) {
    int fd = (int)syscall(SYS_openat2, root, *path == 0 ? "." : path, &how, sizeof how);
    /* EAGAIN: a concurrent rename left the kernel unsure (openat2(2)). */
    if (fd >= 0 || (errno != EAGAIN && errno != EINTR)) return fd;
  }
}

int open_beneath(int root, const char *path, int flags) {
  char piece[PATH_MAX];
  int at = -1;
  while (strlen(path) >= PATH_MAX) {
    size_t length = PATH_MAX - 1;
    while (length > 0 && path[length] != '/') length--;
    if (length == 0) {
      errno = ENAMETOOLONG;
      break;
    }
    memcpy(piece, path, length);
    piece[length] = 0;
    int next = open_step(at < 0 ? root : at, piece, O_PATH | O_DIRECTORY);
    close_keeping_errno(at);
    if (next < 0) return -1;
    at = next;
    path += length + 1;
  }
  int fd = strlen(path) >= PATH_MAX ? -1 : open_step(at < 0 ? root : at, path, flags);
  close_keeping_errno(at);
  return fd;
}

int open_parent_of(int root, const char *path, const char **name) {
  const char *last = strrchr(path, '/');
  *name = last == NULL ? path : last + 1;
  char *folder = strndup(path, last == NULL ? 0 : (size_t)(last - path));
  if (folder == NULL) abort();
  int fd = open_beneath(root, folder, O_PATH | O_DIRECTORY);
  int error = errno;
  free(folder);
  errno = error;
  return fd;
}

char *path_join(const char *below, const char *name) {
  char *path;
  if (asprintf(&path, "%s%s%s", below, *below == 0 || *name == 0 ? "" : "/", name) < 0) abort();
  return path;
}

int names_of(int folder, struct text *names) {
  int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *listing = again < 0 ? NULL : fdopendir(again);
  if (listing == NULL) {
    close_keeping_errno(again);
    return -1;
  }
  for (;;) {
    errno = 0;
    struct dirent *entry = readdir(listing);
    if (entry == NULL) break;
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) text_field(names, entry->d_name);
  }
  int error = errno;
  closedir(listing);
  errno = error;
  return error == 0 ? 0 : -1;
}

/* Returns -1 with errno where the walk ends at what cannot be read, otherwise 0. */
static int unreadable(const struct below_taker *taker, const char *path) {
  return taker == NULL ? -1 : taker->unreadable(taker->context, path);
}

static int walk_into(int folder, const char *name, const char *path, struct sight *whole, const struct below_taker *taker) {
  int child = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (child < 0) return unreadable(taker, path);
  int result = walk_below(child, path, whole, taker);
  close_keeping_errno(child);
  return result;
}

int walk_below(int folder, const char *path, struct sight *whole, const struct below_taker *taker) {
  struct text names = {0};
  int result = names_of(folder, &names);
  if (result < 0) result = unreadable(taker, path);
  struct text_reader reader = {names.data, names.data + names.length};
  for (char *name = text_next(&reader); name != NULL && result == 0; name = text_next(&reader)) {
    struct sight sight;
    char *below = path_join(path, name);
    if (sight_at(folder, name, &sight) < 0) {
      result = unreadable(taker, below);
    } else if (sight.type != TYPE_NONE) {
      whole->count++;
      if (sight.ctime > whole->newest) whole->newest = sight.ctime;
      bool enters = taker == NULL || taker->each(taker->context, below, &sight);
      if (enters && sight.type == TYPE_FOLDER) result = walk_into(folder, name, below, whole, taker);
    }
    int error = errno;
    free(below);
    errno = error;
  }
  text_clear(&names);
  return result;
}

static int empty_folder(int folder) {
  struct text names = {0};
  int result = names_of(folder, &names);
  struct text_reader reader = {names.data, names.data + names.length};
  for (char *name = text_next(&reader); name != NULL && result == 0; name = text_next(&reader)) {
    result = remove_tree(folder, name);
  }
  text_clear(&names);
  return result;
}

int remove_tree(int folder, const char *name) {
  if (unlinkat(folder, name, 0) == 0 || errno == ENOENT) return 0;
  if (errno != EISDIR && errno != EPERM) return -1;
  if (unlinkat(folder, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return 0;
  /* An unreadable or non-empty folder: lift its mode, then empty. Follows no link. */
  char link[64];
  int fd = openat(folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return -1;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  int result = chmod(link, 0700) < 0 ? -1 : empty_folder(fd);
  close_keeping_errno(fd);
  return result < 0 ? -1 : unlinkat(folder, name, AT_REMOVEDIR);
}

#define NO_WAIT (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

/* Opens a file whose owner lacks read permission (a command may `chmod 000` its files): sets the permission
   for the moment of opening. */
static int open_anyway(int folder, const char *name, int flags) {
  char link[64];
  struct stat status;
  int fd = -1;
  int held = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (held < 0) return -1;
  snprintf(link, sizeof link, "/proc/self/fd/%d", held);
  if (fstat(held, &status) == 0 && S_ISREG(status.st_mode) && chmod(link, (status.st_mode & 07777) | 0400) == 0) {
    fd = open(link, flags & ~O_NOFOLLOW);
    int error = errno;
    if (chmod(link, status.st_mode & 07777) < 0 && fd >= 0) {
      error = errno;
      close(fd);
      fd = -1;
    }
    errno = error;
  }
  close_keeping_errno(held);
  return fd;
}

int open_plainly(int folder, const char *name, struct stat *status) {
  int fd = openat(folder, name, NO_WAIT);
  if (fd < 0) return -1;
  if (fstat(fd, status) == 0 && S_ISREG(status->st_mode)) return fd;
  close(fd);
  errno = EINVAL;
  return -1;
}

int open_readable(int folder, const char *name, struct stat *status) {
  int fd = open_plainly(folder, name, status);
  if (fd >= 0 || errno != EACCES) return fd;
  fd = open_anyway(folder, name, NO_WAIT);
  if (fd < 0 || fstat(fd, status) == 0) return fd;
  close(fd);
  return -1;
}

int parents_open(struct parents *parents, const char *path, const char **name) {
  const char *last = strrchr(path, '/');
  size_t length = last == NULL ? 0 : (size_t)(last - path);
  if (parents->path != NULL && strlen(parents->path) == length && memcmp(parents->path, path, length) == 0) {
    *name = last == NULL ? path : last + 1;
    return parents->fd;
  }
  parents_end(parents);
  int fd = open_parent_of(parents->root, path, name);
  if (fd < 0) return -1;
  parents->fd = fd;
  parents->path = strndup(path, length);
  if (parents->path == NULL) abort();
  return fd;
}

void parents_end(struct parents *parents) {
  if (parents->path == NULL) return;
  int error = errno;
  close(parents->fd);
  free(parents->path);
  parents->path = NULL;
  errno = error;
}
