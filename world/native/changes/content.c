#define _GNU_SOURCE
#include "changes/content.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "lib/sha256.h"

#define PIECE (128 * 1024)

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

static enum content hash_link(int folder, const char *name, struct sha256 *hash) {
  char target[PATH_MAX + 1];
  ssize_t length = readlinkat(folder, name, target, sizeof target);
  if (length < 0 || length == (ssize_t)sizeof target) return CONTENT_UNREADABLE;
  sha256_add(hash, target, (size_t)length);
  return CONTENT_TAKEN;
}

enum content content_hash(int folder, const char *name, const struct sight *sight, uint64_t *budget, char *hex) {
  struct sha256 hash;
  struct stat status;
  enum content result;
  sha256_begin(&hash);
  if (sight->type == TYPE_LINK) {
    result = hash_link(folder, name, &hash);
  } else if (sight->type == TYPE_FILE) {
    /* Skip: a sparse file can claim any size for free. */
    if ((uint64_t)sight->size > *budget) return CONTENT_TOO_MUCH;
    if (sight->size == 0) {
      sha256_end(&hash, hex);
      return CONTENT_TAKEN;
    }
    int fd = open_plainly(folder, name, &status);
    if (fd < 0) return CONTENT_UNREADABLE;
    result = hash_file(fd, budget, &hash);
    close(fd);
  } else {
    return CONTENT_NONE;
  }
  if (result == CONTENT_TAKEN) sha256_end(&hash, hex);
  return result;
}

/* Returns where the next data begins at or behind `at`, `size` where none is left; `at` itself on a file system that knows no holes. */
static off_t next_data(int fd, off_t at, off_t size) {
  off_t data = lseek(fd, at, SEEK_DATA);
  if (data >= 0) return data < size ? data : size;
  return errno == ENXIO ? size : at;
}

/* Skips what is a hole in both files: a terabyte of nothing costs nobody anything to make, and would be read for minutes. */
static bool same_bytes(int one, int other, off_t size, uint64_t *budget) {
  static uint8_t left[PIECE], right[PIECE];
  for (off_t at = 0; at < size;) {
    off_t mine = next_data(one, at, size), theirs = next_data(other, at, size);
    at = mine < theirs ? mine : theirs;
    if (at >= size) break;
    if (lseek(one, at, SEEK_SET) != at || lseek(other, at, SEEK_SET) != at) return false;
    ssize_t length = read_piece(one, left);
    if (length <= 0 || read_piece(other, right) != length) return false;
    if (!spend(budget, 2 * (uint64_t)length) || memcmp(left, right, (size_t)length) != 0) return false;
    at += length;
  }
  return lseek(one, 0, SEEK_END) == size && lseek(other, 0, SEEK_END) == size;
}

static bool same_files(const struct pair *pair, opener open_upper, uint64_t *budget) {
  struct stat status;
  if (pair->above->size != pair->below->size) return false;
  if (pair->above->size == 0) return true;
  int left = open_upper(pair->upper, pair->name, &status);
  int right = left < 0 ? -1 : open_plainly(pair->lower, pair->name, &status);
  bool same = right >= 0 && same_bytes(left, right, pair->above->size, budget);
  if (left >= 0) close(left);
  if (right >= 0) close(right);
  return same;
}

static bool same_links(const struct pair *pair) {
  char left[PATH_MAX + 1], right[PATH_MAX + 1];
  ssize_t length = readlinkat(pair->upper, pair->name, left, sizeof left);
  return length >= 0 && readlinkat(pair->lower, pair->name, right, sizeof right) == length &&
         memcmp(left, right, (size_t)length) == 0;
}

static bool same_devices(const struct pair *pair) {
  struct stat left, right;
  return fstatat(pair->upper, pair->name, &left, AT_SYMLINK_NOFOLLOW) == 0 &&
         fstatat(pair->lower, pair->name, &right, AT_SYMLINK_NOFOLLOW) == 0 && left.st_rdev == right.st_rdev;
}

bool content_same(const struct pair *pair, opener open_upper, uint64_t *budget) {
  if (pair->above->type != pair->below->type) return false;
  switch (pair->above->type) {
    case TYPE_FILE: return same_files(pair, open_upper, budget);
    case TYPE_LINK: return same_links(pair);
    case TYPE_CHARACTER:
    case TYPE_BLOCK: return same_devices(pair);
    default: return true;
  }
}
