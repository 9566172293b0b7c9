#ifndef SUBSTRATE_CHANGES_HELD_PATHS_H
#define SUBSTRATE_CHANGES_HELD_PATHS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "changes/held_text.h"

/* How one name was found. Times are nanoseconds since the epoch; `newest` is the latest ctime of what lies below a
   folder, and `count` how much that is. */
struct sight {
  char type; /* f d l p s c b, or 0: nothing is there */
  unsigned mode;
  int64_t size, mtime, ctime, newest;
  uint64_t inode, count, links;
};

void sight_of(const struct stat *status, struct sight *sight);
/* No link is followed. -1 only for errors other than that nothing is there. */
int sight_at(int folder, const char *name, struct sight *sight);
void sight_write(struct text *text, const struct sight *sight);
bool sight_read(const char *text, struct sight *sight);

/* Opens `path` below the folder `root`: through no symlink, no magic link, no mount point and no `..`; of any length. */
int open_beneath(int root, const char *path, int flags);
/* Opens the folder that holds `path` and points `name` at its last part. */
int open_parent_of(int root, const char *path, const char **name);

/* "below/name", in memory that is the caller's to free. */
char *path_join(const char *below, const char *name);

/* The names in a folder, each a field. The folder must be open for reading. -1 with errno. */
int names_of(int folder, struct text *names);
/* Fills in `newest` and `count`. `each` (may be NULL) is told of everything below, with its path below `path`. */
int walk_below(int folder, const char *path, struct sight *whole,
               void (*each)(void *context, const char *path, const struct sight *sight), void *context);
/* Removes what `name` is, with all below it, and whatever modes there are in the way. ENOENT is no error. */
int remove_tree(int folder, const char *name);

/* Opens a regular file for reading, following no link and waiting for nothing. -1 with errno; EINVAL when it is none. */
int open_plainly(int folder, const char *name, struct stat *status);
/* The same; one of our own that its mode does not let us read as well, whose mode is then set back. */
int open_readable(int folder, const char *name, struct stat *status);

/* The folder that was opened last: most steps follow others in the same one. */
struct parents {
  int root, fd;
  char *path;
};

/* As `open_parent_of`; the descriptor stays the cache's, and open until the next call. */
int parents_open(struct parents *parents, const char *path, const char **name);
void parents_end(struct parents *parents);

#endif
