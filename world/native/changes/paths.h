#ifndef SUBSTRATE_CHANGES_PATHS_H
#define SUBSTRATE_CHANGES_PATHS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "changes/text.h"

/* Also written as letters, into rows and journals. */
enum file_type {
  TYPE_NONE = 0, /* missing */
  TYPE_FILE = 'f',
  TYPE_FOLDER = 'd',
  TYPE_LINK = 'l',
  TYPE_PIPE = 'p',
  TYPE_SOCKET = 's',
  TYPE_CHARACTER = 'c',
  TYPE_BLOCK = 'b',
};

/* State of a name at a point in time. Times are nanoseconds since the epoch; `newest` is the latest ctime
   below a folder, and `count` the number of entries below. */
struct sight {
  enum file_type type;
  unsigned mode;
  int64_t size, mtime, ctime, newest;
  uint64_t inode, count, links;
};

void sight_of(const struct stat *status, struct sight *sight);
/* Reads the state without following a link. A missing name is TYPE_NONE; -1 for other errors. */
int sight_at(int folder, const char *name, struct sight *sight);
void sight_write(struct text *text, const struct sight *sight);
bool sight_read(const char *text, struct sight *sight);

/* Opens `path`, of any length, below the folder `root`: through no symlink, magic link, mount point or
   `..`. */
int open_beneath(int root, const char *path, int flags);
/* Opens the parent folder of `path` and sets `name` to the last component. */
int open_parent_of(int root, const char *path, const char **name);

/* Closes a descriptor, unless it is -1, and keeps errno. */
void close_keeping_errno(int fd);

/* Returns "below/name", to be freed by the caller. */
char *path_join(const char *below, const char *name);

/* Lists the names in a folder open for reading, a field each. -1 with errno. */
int names_of(int folder, struct text *names);
/* Who takes the entries below a folder. */
struct below_taker {
  /* False: the walk does not go into this entry. */
  bool (*each)(void *context, const char *path, const struct sight *sight);
  /* Takes a path that cannot be read (errno). 0: the walk goes on; -1: it ends with errno. */
  int (*unreadable)(void *context, const char *path);
  void *context;
};
/* Fills in `newest` and `count`. `taker` (may be NULL) gets every entry below, with its path prefixed by `path`.
   Without a taker the walk ends at the first error: -1 with errno. */
int walk_below(int folder, const char *path, struct sight *whole, const struct below_taker *taker);
/* Removes `name` with all contents, whatever the modes. ENOENT is not an error. */
int remove_tree(int folder, const char *name);

/* Opens a regular file for reading, without following a link or waiting. -1 with errno; EINVAL for other file
   types. */
int open_plainly(int folder, const char *name, struct stat *status);
/* Like open_plainly, but also opens the user's own file without read permission, and restores its mode. */
int open_readable(int folder, const char *name, struct stat *status);

/* A cache of the last parent folder: most steps follow another step in the same folder. */
struct parents {
  int root, fd;
  char *path;
};

/* Like `open_parent_of`; the cache owns the descriptor, open until the next call. */
int parents_open(struct parents *parents, const char *path, const char **name);
void parents_end(struct parents *parents);

#endif
