#define _GNU_SOURCE
#include "files/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As many links as the kernel follows (path_resolution(7)). */
#define LINKS_MAX 40

/* Bytes in which a NUL says that a file is no text. */
#define LOOKED_AT 8192

bool fault_at(struct fault *fault, const char *word, int error, const char *path) {
  fault->word = word;
  fault->error = error;
  snprintf(fault->path, sizeof fault->path, "%s", path);
  return false;
}

static void name_place(struct place *place) {
  char link[32];
  snprintf(link, sizeof link, "/proc/self/fd/%d", place->folder);
  ssize_t length = readlink(link, place->path, PATH_MAX);
  if (length < 0) length = 0;
  if (length == 1) length = 0;
  snprintf(place->path + length, sizeof place->path - (size_t)length, "/%s", place->name);
}

/* Makes the folder `path` below `base`, and the folders above it. */
static int make_folders(int base, const char *path, struct made *made) {
  char part[PATH_MAX];
  size_t length = strlen(path);
  if (length >= sizeof part) return ENAMETOOLONG;
  memcpy(part, path, length + 1);
  for (char *at = part + 1; at <= part + length; at++) {
    if (*at != '/' && *at != 0) continue;
    char was = *at;
    *at = 0;
    if (mkdirat(base, part, 0777) == 0) {
      struct place *place = made->count < MADE_MAX ? &made->places[made->count] : NULL;
      int fd = place == NULL ? -1 : openat(base, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
      const char *last = strrchr(part, '/');
      last = last == NULL ? part : last + 1;
      if (fd >= 0 && (place->folder = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC)) >= 0) {
        snprintf(place->name, sizeof place->name, "%s", last);
        made->count++;
      }
      if (fd >= 0) close(fd);
    } else if (errno != EEXIST && errno != EISDIR) {
      return errno;
    }
    *at = was;
  }
  return 0;
}

void made_undo(struct made *made) {
  while (made->count > 0) {
    struct place *place = &made->places[--made->count];
    /* Fails, ignoring: somebody has put something there meanwhile. */
    unlinkat(place->folder, place->name, AT_REMOVEDIR);
    close(place->folder);
  }
}

static int open_folder(int base, const char *path, struct made *made, int *error) {
  int fd = openat(base, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  *error = errno;
  if (fd >= 0 || *error != ENOENT || made == NULL) return fd;
  *error = make_folders(base, path, made);
  if (*error != 0) return -1;
  fd = openat(base, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  *error = errno;
  return fd;
}

bool place_find(struct place *place, const char *path, struct made *made, struct fault *fault) {
  char text[PATH_MAX], target[PATH_MAX];
  int base = AT_FDCWD;
  place->folder = -1;
  if (path[0] == 0 || strlen(path) >= sizeof text) return fault_at(fault, "errno", ENAMETOOLONG, path);
  strcpy(text, path);
  for (int links = 0; links <= LINKS_MAX; links++) {
    char *slash = strrchr(text, '/');
    const char *name = slash == NULL ? text : slash + 1;
    const char *folder = slash == NULL ? "." : slash == text ? "/" : text;
    struct stat status;
    int error;
    if (name[0] == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
      if (base != AT_FDCWD) close(base);
      return fault_at(fault, "errno", EISDIR, path);
    }
    if (strlen(name) >= sizeof place->name) {
      if (base != AT_FDCWD) close(base);
      return fault_at(fault, "errno", ENAMETOOLONG, path);
    }
    strcpy(place->name, name);
    if (slash != NULL && slash != text) *slash = 0;
    place->folder = open_folder(base, folder, made, &error);
    if (base != AT_FDCWD) close(base);
    base = AT_FDCWD;
    if (place->folder < 0) return fault_at(fault, "errno", error, path);
    name_place(place);
    if (fstatat(place->folder, place->name, &status, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISLNK(status.st_mode)) return true;
    ssize_t length = readlinkat(place->folder, place->name, target, sizeof target);
    if (length < 0 || length == (ssize_t)sizeof target) break;
    target[length] = 0;
    base = place->folder;
    place->folder = -1;
    strcpy(text, target);
    if (text[0] == 0) break;
  }
  if (base != AT_FDCWD) close(base);
  place_close(place);
  return fault_at(fault, "errno", ELOOP, path);
}

void place_close(struct place *place) {
  if (place->folder >= 0) close(place->folder);
  place->folder = -1;
}

int place_read(const struct place *place, struct stat *status, struct fault *fault) {
  struct stat seen;
  /* Looks before it opens: to open a device or a pipe can have an effect. */
  if (fstatat(place->folder, place->name, &seen, AT_SYMLINK_NOFOLLOW) < 0) {
    fault_at(fault, "errno", errno, place->path);
    return -1;
  }
  if (!S_ISREG(seen.st_mode)) {
    fault_at(fault, S_ISDIR(seen.st_mode) ? "errno" : "not_regular", S_ISDIR(seen.st_mode) ? EISDIR : 0, place->path);
    return -1;
  }
  int fd = openat(place->folder, place->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) {
    fault_at(fault, "errno", errno, place->path);
    return -1;
  }
  if (fstat(fd, status) < 0 || !S_ISREG(status->st_mode)) {
    close(fd);
    fault_at(fault, "not_regular", 0, place->path);
    return -1;
  }
  return fd;
}

bool is_binary(const uint8_t *data, size_t length) {
  return memchr(data, 0, length < LOOKED_AT ? length : LOOKED_AT) != NULL;
}

bool place_content(const struct place *place, struct stat *status, uint8_t **data, struct fault *fault) {
  int fd = place_read(place, status, fault);
  if (fd < 0) return false;
  size_t size = (size_t)status->st_size, length = 0;
  if (status->st_size > (off_t)CONTENT_MAX) {
    close(fd);
    return fault_at(fault, "too_large", 0, place->path);
  }
  *data = malloc(size + 1);
  while (*data != NULL && length <= size) {
    ssize_t got = read(fd, *data + length, size + 1 - length);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    length += (size_t)got;
  }
  close(fd);
  if (*data != NULL && length == size) return true;
  free(*data);
  *data = NULL;
  return fault_at(fault, "changed", 0, place->path);
}
