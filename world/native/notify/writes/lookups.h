/* Where a name that a caller gave really is: looked up as the caller's own call will, a moment later. */
#ifndef SUBSTRATE_NOTIFY_WRITES_LOOKUPS_H
#define SUBSTRATE_NOTIFY_WRITES_LOOKUPS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "lib/file_calls.h"

struct lookup {
  char path[2 * PATH_MAX]; /* relative to the project, or absolute in what is opened outside of it */
  size_t length;
  bool exists;
  struct stat stat; /* where it exists; a link itself */
  int refused; /* EROFS or EBUSY: what the kernel will say to the call since a mount of this world stands there. EPERM: a name that is not
                  there and that no command may make (names_refuse): the call is not to be let go on. Else 0 */
  char refused_path[2 * PATH_MAX]; /* then the absolute path, inside or outside of the project */
};

enum found {
  FOUND,
  ELSEWHERE, /* neither below the project nor in what is opened, or its call will fail */
  UNREADABLE /* the caller's memory or descriptors are closed to us, or we are out of something */
};

/* The real path of the folder that counts, and the procfs of PID 1. */
void lookups_open(int proc, const char *project);
/* Whether what has this inode stands at the path of a place, now. */
bool lookup_holds(const char *path, ino_t inode);
/* Its absolute path; false: it is too long. */
bool lookup_whole(const struct lookup *place, char whole[PATH_MAX]);
/* False: nothing counts in this world. */
bool lookups_counted(void);
/* `name` may be completed by what openat2 has in memory. */
enum found lookup_find(pid_t caller, struct file_name *name, struct lookup *place);

#endif
