/* Opens paths of a caller as the kernel will for the caller's own call, a moment later. Reads the caller's
   memory. */
#ifndef SUBSTRATE_LIB_CALLERS_H
#define SUBSTRATE_LIB_CALLERS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* The kernel follows 40 links (MAXSYMLINKS, path_resolution(7)), and then the file itself. */
#define CALLERS_LINKS_MAX 41

/* Where a look-up begins. */
struct view {
  pid_t caller;
  bool nested; /* callers_nested */
  int base;   /* folder of the last link; -1: the caller's `folder` */
  int folder; /* AT_FDCWD, or a descriptor of the caller */
};

/* A process, as in procfs. */
struct caller {
  pid_t pid; /* of the process, whichever thread calls */
  pid_t parent;
  pid_t task; /* the thread that calls: it may have a working folder of its own (unshare(2), CLONE_FS) */
};

/* The procfs of PID 1. */
extern int callers_proc;
/* Whether commands may make user namespaces. */
extern bool callers_may_nest;

/* True for a caller in a user namespace of its own: only there can a process have another root, or another mount
   namespace, than PID 1 (chroot(2) and setns(2) need a capability, and clone(2) shares no root with a new user
   namespace). True too where this cannot be told. */
bool callers_nested(pid_t caller);

/* Opens a folder. -1 with errno: the caller's own call fails too, except for ELOOP, which may come from this
   look-up. */
int callers_open(const struct view *view, const char *folder);
/* Reads the absolute path of an open folder; false, and empty, for a folder without path. */
bool callers_real(int fd, char real[PATH_MAX + 1]);
/* Writes the folder's real path and returns the folder. A folder in PID 1's own procfs (`/dev/fd` depends on
   the reader) is replaced by the caller's own. -1, with `fd` closed: unknown. */
int callers_settle(const struct view *view, int fd, char real[PATH_MAX + 1]);

bool callers_is_dots(const char *leaf);
/* As process_vm_readv(2), also of a caller that is not dumpable. */
ssize_t callers_read(pid_t caller, const struct iovec *here, const struct iovec *there, size_t count);
/* Reads `length` bytes of the caller's memory; false, with errno: not all readable. */
bool callers_memory(pid_t caller, uint64_t address, void *data, size_t length);
/* Reads a string, with its NUL if that fits. Returns the length, `size` for a longer string, -1 for
   unreadable memory. */
ssize_t callers_string(pid_t caller, uint64_t address, char *text, size_t size);
/* Reads a path. False, with errno, also for a string longer than any path. */
bool callers_text(pid_t caller, uint64_t address, char text[PATH_MAX]);
/* Splits a path into its folder, which is opened, and the leaf, without trailing slashes. -1: no leaf. */
int callers_part(const struct view *view, char *text, const char **leaf);

/* Identifies the process of a task. False: the task is gone, or procfs cannot be read. */
bool callers_identify(pid_t task, struct caller *caller);

#endif
