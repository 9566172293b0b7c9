/* Resolves a path from a caller's memory as the kernel will for the caller's own call, a moment later. */
#ifndef SUBSTRATE_NOTIFY_WRITES_LOOKUPS_H
#define SUBSTRATE_NOTIFY_WRITES_LOOKUPS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "lib/file_calls.h"

struct lookup {
  char path[2 * PATH_MAX]; /* relative to the project, or absolute in a folder opened outside */
  size_t length;
  bool exists;
  struct stat stat; /* set if `exists`; a link is not followed */
  int refused; /* 0, EROFS or EBUSY: the kernel's answer, because of a mount of this world; EPERM: because no
                  command may create this missing name (names_refuse); EXDEV: the kernel's answer to a link */
  bool unknown; /* UNREADABLE because of how the path's links are followed: it could be any file's */
  bool lock;   /* the lock file of sealed settings (notify/writes/locks.h); `refused_path` is set */
  bool held;   /* PID 1 gives the answer `refused` itself (names_refuse, names_hold) */
  char refused_path[2 * PATH_MAX]; /* set if `refused`: absolute path, inside or outside of the project */
};

enum found {
  FOUND,
  ELSEWHERE, /* outside the project and the opened folders, or the call will fail */
  UNREADABLE /* the caller's memory or descriptors are closed to PID 1, or PID 1 lacks a resource */
};

/* Sets the procfs of PID 1 and the project's real path. */
void lookups_open(int proc, const char *project);
/* True when the path of a lookup now leads to this inode. */
bool lookup_holds(const char *path, ino_t inode);
/* Writes the absolute path; false: too long. */
bool lookup_whole(const struct lookup *place, char whole[PATH_MAX]);
/* False in a world without a recorded project. */
bool lookups_counted(void);
/* Resolves `name`, which may be completed from openat2's struct in memory. */
enum found lookup_find(pid_t caller, struct file_name *name, struct lookup *place);

#endif
