/* What differs between an entry of an upper layer and what it was copied up from. */
#define _GNU_SOURCE
#include "changes/held_compare.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "changes/held_open.h"

#define PIECE (128 * 1024)

static ssize_t read_whole(int fd, char *piece) {
  size_t length = 0;
  while (length < PIECE) {
    ssize_t got = read(fd, piece + length, PIECE - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    length += (size_t)got;
  }
  return (ssize_t)length;
}

/* What cannot be read is called different. */
static bool bytes_equal(int one, int other) {
  static char here[PIECE], there[PIECE];
  for (;;) {
    ssize_t left = read_whole(one, here), right = read_whole(other, there);
    if (left < 0 || left != right || memcmp(here, there, (size_t)left) != 0) return false;
    if (left == 0) return true;
  }
}

static bool files_equal(int upper, int lower, const char *name) {
  struct stat status;
  int one = open_readable(upper, name, &status), other = one < 0 ? -1 : open_plainly(lower, name, &status);
  bool equal = one >= 0 && other >= 0 && bytes_equal(one, other);
  if (one >= 0) close(one);
  if (other >= 0) close(other);
  return equal;
}

static bool links_equal(int upper, int lower, const char *name) {
  char here[PATH_MAX], there[PATH_MAX];
  ssize_t left = readlinkat(upper, name, here, sizeof here), right = readlinkat(lower, name, there, sizeof there);
  return left >= 0 && left == right && memcmp(here, there, (size_t)left) == 0;
}

static bool content_differs(int upper, int lower, const char *name, const struct sight *above, const struct sight *below) {
  if (above->type != below->type) return true;
  if (above->type == 'f') return above->size != below->size || !files_equal(upper, lower, name);
  return above->type == 'l' && !links_equal(upper, lower, name);
}

static bool owners_differ(int upper, int lower, const char *name) {
  struct stat above, below;
  if (fstatat(upper, name, &above, AT_SYMLINK_NOFOLLOW) < 0) return true;
  if (fstatat(lower, name, &below, AT_SYMLINK_NOFOLLOW) < 0) return true;
  return above.st_uid != below.st_uid || above.st_gid != below.st_gid;
}

void flags_of(char *flags, size_t room, int upper, int lower, const char *name, const struct sight *above,
              const struct sight *below, const struct marks *marks) {
  bool both = above->type == below->type;
  bool copied = marks->origin.length > 0;
  bool attributes = both && (above->mode != below->mode || owners_differ(upper, lower, name) ||
                             !attributes_equal(upper, name, lower, name));
  snprintf(flags, room, "%s%s%s%s%s%s", marks->opaque ? "o" : "", attributes ? "a" : "",
           both && above->mtime != below->mtime ? "t" : "",
           below->type != 0 && content_differs(upper, lower, name, above, below) ? "c" : "", copied ? "g" : "",
           copied && below->type != 0 && !origin_is(&marks->origin, lower, name) ? "G" : "");
}
