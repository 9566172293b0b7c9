#define _GNU_SOURCE
#include "changes/change_content.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "lib/sha256.h"

#define PIECE (128 * 1024)

/* Opens a regular file. The name may have been replaced since the look-up: only the opened file counts. */
static int open_file(const struct named_file *place) {
  struct stat status;
  int fd = openat(place->folder, place->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return -1;
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) return fd;
  close(fd);
  return -1;
}

/* Reads a full piece, less at the end of the file. Returns the length, 0 at the end, -1 on an error. */
static ssize_t read_piece(int fd, uint8_t *piece) {
  size_t length = 0;
  while (length < PIECE) {
    ssize_t count = read(fd, piece + length, PIECE - length);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -1;
    if (count == 0) break;
    length += (size_t)count;
  }
  return (ssize_t)length;
}

static bool spend(uint64_t *budget, uint64_t bytes) {
  if (bytes > *budget) return false;
  *budget -= bytes;
  return true;
}

static enum content hash_file(int fd, uint64_t *budget, struct sha256 *hash) {
  static uint8_t piece[PIECE];
  ssize_t length;
  while ((length = read_piece(fd, piece)) > 0) {
    if (!spend(budget, (uint64_t)length)) return CONTENT_TOO_MUCH;
    sha256_add(hash, piece, (size_t)length);
  }
  return length < 0 ? CONTENT_UNREADABLE : CONTENT_TAKEN;
}

static enum content hash_link(const struct named_file *place, struct sha256 *hash) {
  char target[PATH_MAX + 1];
  ssize_t length = readlinkat(place->folder, place->name, target, sizeof target);
  if (length < 0 || length == (ssize_t)sizeof target) return CONTENT_UNREADABLE;
  sha256_add(hash, target, (size_t)length);
  return CONTENT_TAKEN;
}

enum content content_hash(const struct named_file *place, uint64_t *budget, char *hex) {
  struct sha256 hash;
  enum content result;
  sha256_begin(&hash);
  if (S_ISLNK(place->status->st_mode)) {
    result = hash_link(place, &hash);
  } else if (S_ISREG(place->status->st_mode)) {
    /* Skip: a sparse file can claim any size for free. */
    if ((uint64_t)place->status->st_size > *budget) return CONTENT_TOO_MUCH;
    if (place->status->st_size == 0) {
      sha256_end(&hash, hex);
      return CONTENT_TAKEN;
    }
    int fd = open_file(place);
    if (fd < 0) return CONTENT_UNREADABLE;
    result = hash_file(fd, budget, &hash);
    close(fd);
  } else {
    return CONTENT_NONE;
  }
  if (result == CONTENT_TAKEN) sha256_end(&hash, hex);
  return result;
}

static bool same_bytes(int one, int other, uint64_t *budget) {
  static uint8_t left[PIECE], right[PIECE];
  for (;;) {
    ssize_t length = read_piece(one, left);
    if (length < 0 || read_piece(other, right) != length) return false;
    if (length == 0) return true;
    if (!spend(budget, 2 * (uint64_t)length) || memcmp(left, right, (size_t)length) != 0) return false;
  }
}

static bool same_files(const struct named_file *one, const struct named_file *other, uint64_t *budget) {
  if (one->status->st_size != other->status->st_size) return false;
  if (one->status->st_size == 0) return true;
  int left = open_file(one);
  int right = left < 0 ? -1 : open_file(other);
  bool same = right >= 0 && same_bytes(left, right, budget);
  if (left >= 0) close(left);
  if (right >= 0) close(right);
  return same;
}

static bool same_links(const struct named_file *one, const struct named_file *other) {
  char left[PATH_MAX + 1], right[PATH_MAX + 1];
  ssize_t length = readlinkat(one->folder, one->name, left, sizeof left);
  return length >= 0 && readlinkat(other->folder, other->name, right, sizeof right) == length &&
         memcmp(left, right, (size_t)length) == 0;
}

bool content_same(const struct named_file *one, const struct named_file *other, uint64_t *budget) {
  mode_t type = one->status->st_mode & S_IFMT;
  if (type != (other->status->st_mode & S_IFMT)) return false;
  if (type == S_IFREG) return same_files(one, other, budget);
  if (type == S_IFLNK) return same_links(one, other);
  return one->status->st_rdev == other->status->st_rdev;
}
