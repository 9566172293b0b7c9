/* Extended attributes: marks of overlays, and attributes of people. */
#define _GNU_SOURCE
#include "changes/overlay_marks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#define VALUE_MAX 65536
#define NAMES_FIRST 256

/* struct ovl_fb of the kernel: version, magic, length, flags, type, uuid, then the handle
   (fs/overlayfs/overlayfs.h). */
#define ORIGIN_MAGIC 0xfb
#define ORIGIN_HEAD 21

static bool of_user;

void marks_take(bool user) {
  of_user = user;
}

static char *path_of(int folder, const char *name) {
  char *path;
  if (asprintf(&path, "/proc/self/fd/%d/%s", folder, name) < 0) abort();
  return path;
}

/* Lists attribute names with a small buffer first: the kernel allocates the full buffer size. */
static ssize_t list_names(ssize_t (*list)(const char *path, char *names, size_t room), const char *path, char *names) {
  ssize_t length = list(path, names, NAMES_FIRST);
  return length < 0 && errno == ERANGE ? list(path, names, VALUE_MAX) : length;
}

/* Lists the attribute names of `path` (possibly below /proc/self/fd), a field each. -1 with errno. */
static int attributes_of(const char *path, struct text *names) {
  char list[VALUE_MAX];
  ssize_t length = list_names(llistxattr, path, list);
  /* A file system without extended attributes has no marks. */
  if (length < 0) return errno == ENOTSUP ? 0 : -1;
  text_add(names, list, (size_t)length);
  return 0;
}

/* True for attributes to keep: `user.` except the overlay's, and access control lists. */
static bool attribute_is_kept(const char *name) {
  if (strncmp(name, "user.overlay.", 13) == 0) return false;
  return strncmp(name, "user.", 5) == 0 || strncmp(name, "system.posix_acl_", 17) == 0;
}

static void read_origin(const char *path, const char *name, struct origin *origin) {
  uint8_t value[ORIGIN_HEAD + sizeof origin->bytes];
  ssize_t length = lgetxattr(path, name, value, sizeof value);
  if (length <= ORIGIN_HEAD || value[1] != ORIGIN_MAGIC || value[2] != length) return;
  origin->type = value[4];
  origin->length = (unsigned)length - ORIGIN_HEAD;
  memcpy(origin->bytes, value + ORIGIN_HEAD, origin->length);
}

/* Reads a mark; `word` follows `trusted.overlay.` or `user.overlay.`. */
static void take_mark(const char *path, const char *name, const char *word, struct marks *marks) {
  char value = 0;
  if (strcmp(word, "opaque") == 0) {
    /* "x": whiteouts may be regular files, and nothing is hidden. */
    if (lgetxattr(path, name, &value, 1) != 1) return;
    if (value == 'x') marks->whiteouts = true;
    else marks->opaque = true;
  } else if (strcmp(word, "whiteouts") == 0) {
    marks->whiteouts = true;
  } else if (strcmp(word, "whiteout") == 0) {
    marks->whiteout = true;
  } else if (strcmp(word, "metacopy") == 0 || strcmp(word, "redirect") == 0) {
    marks->elsewhere = true;
  } else if (strcmp(word, "origin") == 0) {
    read_origin(path, name, &marks->origin);
  } else if (strncmp(word, "overlay.", 8) == 0) {
    marks->forged = true;
  }
}

int marks_of(int folder, const char *name, struct marks *marks) {
  struct text names = {0};
  char *path = path_of(folder, name);
  *marks = (struct marks){0};
  int result = attributes_of(path, &names);
  struct text_reader reader = {names.data, names.data + names.length};
  for (char *each = text_next(&reader); each != NULL; each = text_next(&reader)) {
    if (strcmp(each, "security.capability") == 0) marks->capability = true;
    if (strncmp(each, "trusted.overlay.", 16) == 0 && !of_user) take_mark(path, each, each + 16, marks);
    if (strncmp(each, "user.overlay.", 13) != 0) continue;
    /* A mark with the prefix that the kernel ignores was written by a command: neither honour nor apply. */
    if (of_user) take_mark(path, each, each + 13, marks);
    else marks->forged = true;
  }
  int error = errno;
  text_clear(&names);
  free(path);
  errno = error;
  return result;
}

bool is_whiteout(const struct stat *status, const struct marks *marks, bool whiteouts) {
  if (S_ISCHR(status->st_mode)) return status->st_rdev == makedev(0, 0);
  return whiteouts && marks->whiteout && S_ISREG(status->st_mode) && status->st_size == 0;
}

const char *refusal_of(const struct stat *status, const struct marks *marks) {
  mode_t mode = status->st_mode;
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "the file is a device";
  if (S_ISSOCK(mode)) return "the file is a socket, which only the process that made it could serve";
  if (S_ISFIFO(mode)) return "the file is a named pipe, which would block every program that opens it";
  if (S_ISREG(mode) && (mode & S_ISUID) != 0) return "the file is setuid";
  if (S_ISREG(mode) && (mode & S_ISGID) != 0) return "the file is setgid";
  if (S_ISDIR(mode) && (mode & S_ISUID) != 0) return "the folder is setuid";
  if (marks->capability) return "the file has capabilities";
  if (marks->elsewhere) return "its content lies elsewhere in the overlay (metacopy or redirect)";
  if (marks->forged || marks->whiteout) return "the file has extended attributes that only an overlay may set";
  return NULL;
}

bool origin_is(const struct origin *origin, int folder, const char *name) {
  struct {
    struct file_handle head;
    uint8_t bytes[128];
  } found = {.head = {.handle_bytes = 128}};
  int mount;
  if (origin->length == 0 || name_to_handle_at(folder, name, &found.head, &mount, 0) < 0) return true;
  return found.head.handle_type == origin->type && found.head.handle_bytes == origin->length &&
         memcmp(found.head.f_handle, origin->bytes, origin->length) == 0;
}

/* The kinds of the kept attributes in `names` that have another value, or none, at the other path. */
static unsigned values_differing(const struct text *names, const char *path, const char *other_path) {
  static char one[VALUE_MAX], other[VALUE_MAX];
  struct text_reader reader = {names->data, names->data + names->length};
  unsigned kinds = 0;
  for (char *name = text_next(&reader); name != NULL; name = text_next(&reader)) {
    if (!attribute_is_kept(name)) continue;
    ssize_t here = lgetxattr(path, name, one, sizeof one);
    ssize_t there = other_path == NULL ? -1 : lgetxattr(other_path, name, other, sizeof other);
    if (here >= 0 && here == there && memcmp(one, other, (size_t)here) == 0) continue;
    kinds |= strncmp(name, "user.", 5) == 0 ? ATTRIBUTES_EXTENDED : ATTRIBUTES_ACCESS_LIST;
  }
  return kinds;
}

unsigned attributes_differing(int left, const char *left_name, int right, const char *right_name) {
  struct text lefts = {0}, rights = {0};
  char *one = path_of(left, left_name), *other = right < 0 ? NULL : path_of(right, right_name);
  unsigned kinds = ATTRIBUTES_ACCESS_LIST | ATTRIBUTES_EXTENDED;
  if (attributes_of(one, &lefts) == 0 && (other == NULL || attributes_of(other, &rights) == 0)) {
    kinds = values_differing(&lefts, one, other);
    if (other != NULL) kinds |= values_differing(&rights, other, one);
  }
  text_clear(&lefts);
  text_clear(&rights);
  free(one);
  free(other);
  return kinds;
}

/* Copies values. getxattr and setxattr follow the /proc/self/fd/N path itself, and no further link. */
static int copy_values(const struct text *names, const char *from, const char *to) {
  static char value[VALUE_MAX];
  struct text_reader reader = {names->data, names->data + names->length};
  for (char *name = text_next(&reader); name != NULL; name = text_next(&reader)) {
    if (!attribute_is_kept(name)) continue;
    ssize_t length = getxattr(from, name, value, sizeof value);
    if (length < 0 || setxattr(to, name, value, (size_t)length, 0) < 0) return -1;
  }
  return 0;
}

static int drop_others(const struct text *names, const char *from, const char *to) {
  struct text_reader reader = {names->data, names->data + names->length};
  for (char *name = text_next(&reader); name != NULL; name = text_next(&reader)) {
    if (attribute_is_kept(name) && getxattr(from, name, NULL, 0) < 0 && removexattr(to, name) < 0) return -1;
  }
  return 0;
}

static int names_at(const char *link, struct text *names) {
  char list[VALUE_MAX];
  ssize_t length = list_names(listxattr, link, list);
  if (length < 0) return errno == ENOTSUP ? 0 : -1;
  text_add(names, list, (size_t)length);
  return 0;
}

/* True when both paths have the attribute with the same value, or both lack it. */
static bool value_equals(const char *name, const char *left, const char *right) {
  static char one[VALUE_MAX], other[VALUE_MAX];
  ssize_t here = getxattr(left, name, one, sizeof one);
  if (here < 0 && errno != ENODATA && errno != ENOTSUP) return false;
  ssize_t there = getxattr(right, name, other, sizeof other);
  if (there < 0) return here < 0 && (errno == ENODATA || errno == ENOTSUP);
  return here == there && memcmp(one, other, (size_t)here) == 0;
}

bool attributes_are_of(const char *now, const char *one, const char *other) {
  struct text names = {0};
  bool same = names_at(now, &names) == 0 && names_at(one, &names) == 0 && names_at(other, &names) == 0;
  struct text_reader reader = {names.data, names.data + names.length};
  for (char *name = text_next(&reader); name != NULL && same; name = text_next(&reader)) {
    if (attribute_is_kept(name)) same = value_equals(name, now, one) || value_equals(name, now, other);
  }
  text_clear(&names);
  return same;
}

int attributes_copy(const char *from, const char *to) {
  struct text wanted = {0}, present = {0};
  int result = names_at(from, &wanted);
  if (result == 0) result = names_at(to, &present);
  if (result == 0) result = drop_others(&present, from, to);
  if (result == 0) result = copy_values(&wanted, from, to);
  text_clear(&wanted);
  text_clear(&present);
  return result;
}
