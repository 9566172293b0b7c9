/* Compares an upper layer with the project below: both trees in step, by descriptors, following no link. */
#define _GNU_SOURCE
#include "changes/held_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "changes/held_marks.h"
#include "changes/held_paths.h"

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

/* Unreadable content counts as different. */
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

/* Writes the flags of held_scan.h for an entry that exists in `upper`, and possibly below in `lower`. */
static void flags_of(char *flags, size_t room, int upper, int lower, const char *name, const struct sight *above,
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

struct entry {
  const char *path, *name;
  int upper, lower; /* folders of the entry; `lower` is -1 without a lower folder */
  bool whiteouts;   /* whiteouts in this folder may be regular files */
  bool covered;     /* the folder hides the lower folder */
};

/* More nested folders than any path can name (PATH_MAX): each level takes stack, a descriptor or two, and its
   path. */
#define DEPTH_MAX 2100

static int depth;

static int scan_folder(struct text *rows, const char *path, int upper, int lower, bool whiteouts, bool covered);

static void row(struct text *rows, char kind, const char *path, const char *flags, const char *refusal,
                const struct sight *above, const struct sight *below) {
  char word[2] = {kind, 0};
  text_field(rows, word);
  text_field(rows, path);
  text_field(rows, flags);
  text_field(rows, refusal);
  sight_write(rows, above);
  sight_write(rows, below);
}

static void tell_below(void *context, const char *path, const struct sight *sight) {
  static const struct sight NONE = {0};
  row(context, '.', path, "", "", &NONE, sight);
}

/* Lists a lower folder that the change removes: if somebody changed a file inside meanwhile, apply must
   ask. */
static int count_below(struct text *rows, const struct entry *entry, struct sight *below) {
  int folder = openat(entry->lower, entry->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return -1;
  int result = walk_below(folder, entry->path, below, tell_below, rows);
  int error = errno;
  close(folder);
  errno = error;
  return result;
}

static const char *refusal_of(const struct sight *above, const struct marks *marks) {
  if (above->type == 'c' || above->type == 'b') return "it is a device";
  if (above->type == 's') return "it is a socket, which only the process that made it could serve";
  if (above->type == 'p') return "it is a pipe, which would hold whoever opens it";
  if (above->type == 'f' && (above->mode & S_ISUID) != 0) return "it is a setuid file";
  if (above->type == 'f' && (above->mode & S_ISGID) != 0) return "it is a setgid file";
  if (above->type == 'd' && (above->mode & S_ISUID) != 0) return "it is a setuid folder";
  if (marks->capability) return "it has a file capability";
  if (marks->elsewhere) return "its layer names content that lies elsewhere (metacopy or redirect)";
  if (marks->forged || marks->whiteout) return "it carries an overlay's own attributes";
  return "";
}

/* Reports lower names hidden by the upper folder as removed. */
static int scan_hidden(struct text *rows, const char *path, int upper, int lower) {
  static const struct sight NONE = {0};
  struct text names = {0};
  int result = names_of(lower, &names);
  struct text_reader reader = {names.data, names.data + names.length};
  for (char *name = text_next(&reader); name != NULL && result == 0; name = text_next(&reader)) {
    struct sight above, below;
    if (sight_at(upper, name, &above) < 0 || sight_at(lower, name, &below) < 0) result = -1;
    if (result < 0 || below.type == 0 || above.type != 0) continue;
    struct entry entry = {.path = path_join(path, name), .name = name, .upper = upper, .lower = lower};
    if (below.type == 'd') result = count_below(rows, &entry, &below);
    row(rows, 'w', entry.path, "i", "", &NONE, &below);
    free((char *)entry.path);
  }
  int error = errno;
  text_clear(&names);
  errno = error;
  return result;
}

/* Opens the lower folder; -1 when the lower entry is missing or not a folder. */
static int open_lower(const struct entry *entry, const struct sight *below) {
  if (below->type != 'd') return -1;
  int fd = open_beneath(entry->lower, entry->name, O_RDONLY | O_DIRECTORY);
  return fd;
}

static int scan_directory(struct text *rows, const struct entry *entry, const struct sight *above, struct sight *below,
                          const struct marks *marks, char *flags, const char *refusal) {
  int lower = open_lower(entry, below);
  if (below->type == 'd' && lower < 0) refusal = "the folder of that name cannot be read, or is another file system";
  if (depth == DEPTH_MAX) {
    row(rows, 'd', entry->path, flags, "it lies too deep to be looked into", above, below);
    if (lower >= 0) close(lower);
    return 0;
  }
  bool covered = marks->opaque || entry->covered;
  int result = marks->opaque && lower >= 0 ? count_below(rows, entry, below) : 0;
  int upper = result < 0 ? -1 : openat(entry->upper, entry->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (upper < 0 && errno == EACCES) refusal = "its mode keeps its owner from looking into it";
  else if (upper < 0) result = -1;
  row(rows, 'd', entry->path, flags, refusal, above, below);
  depth++;
  if (upper >= 0) result = scan_folder(rows, entry->path, upper, lower, marks->whiteouts, covered);
  depth--;
  if (result == 0 && upper >= 0 && covered && lower >= 0) result = scan_hidden(rows, entry->path, upper, lower);
  int error = errno;
  if (upper >= 0) close(upper);
  if (lower >= 0) close(lower);
  errno = error;
  return result;
}

static bool is_whiteout(const struct entry *entry, const struct stat *status, const struct marks *marks) {
  if (S_ISCHR(status->st_mode) && status->st_rdev == makedev(0, 0)) return true;
  return entry->whiteouts && marks->whiteout && S_ISREG(status->st_mode) && status->st_size == 0;
}

static int scan_entry(struct text *rows, const struct entry *entry) {
  char flags[16];
  struct stat status;
  struct sight above, below = {0};
  struct marks marks = {0};
  static const struct sight NONE = {0};
  if (fstatat(entry->upper, entry->name, &status, AT_SYMLINK_NOFOLLOW) < 0) return -1;
  sight_of(&status, &above);
  /* Skip the attributes of a character device: its stat is enough to recognise a whiteout. */
  if (above.type != 'c' && marks_of(entry->upper, entry->name, &marks) < 0) return -1;
  if (entry->lower >= 0 && sight_at(entry->lower, entry->name, &below) < 0) return -1;
  if (is_whiteout(entry, &status, &marks)) {
    /* A whiteout in a folder that hides the lower folder is redundant. */
    if (entry->lower < 0 || entry->covered) return 0;
    if (below.type == 'd' && count_below(rows, entry, &below) < 0) return -1;
    row(rows, 'w', entry->path, "", "", &NONE, &below);
    return 0;
  }
  if (entry->lower < 0) snprintf(flags, sizeof flags, "n%s", marks.opaque ? "o" : "");
  else flags_of(flags, sizeof flags, entry->upper, entry->lower, entry->name, &above, &below, &marks);
  const char *refusal = refusal_of(&above, &marks);
  if (above.type == 'd') return scan_directory(rows, entry, &above, &below, &marks, flags, refusal);
  if (below.type == 'd' && count_below(rows, entry, &below) < 0) return -1;
  row(rows, above.type == 'f' || above.type == 'l' ? above.type : 'x', entry->path, flags, refusal, &above, &below);
  return 0;
}

static int scan_folder(struct text *rows, const char *path, int upper, int lower, bool whiteouts, bool covered) {
  struct text names = {0};
  int result = names_of(upper, &names);
  struct text_reader reader = {names.data, names.data + names.length};
  for (char *name = text_next(&reader); name != NULL && result == 0; name = text_next(&reader)) {
    struct entry entry = {path_join(path, name), name, upper, lower, whiteouts, covered};
    result = scan_entry(rows, &entry);
    int error = errno;
    free((char *)entry.path);
    errno = error;
  }
  int error = errno;
  text_clear(&names);
  errno = error;
  return result;
}

int scan_changes(int upper, int project, struct text *rows) {
  struct stat above, below;
  struct marks marks;
  if (fstat(upper, &above) < 0 || fstat(project, &below) < 0 || marks_of(upper, ".", &marks) < 0) return -1;
  struct sight sights[2];
  sight_of(&above, &sights[0]);
  sight_of(&below, &sights[1]);
  row(rows, 'd', "", "", marks.opaque || marks.elsewhere ? "its layer hides the whole project" : "", &sights[0], &sights[1]);
  return scan_folder(rows, "", upper, project, marks.whiteouts, false);
}
