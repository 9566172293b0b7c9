/* Folders as a caller names them, opened as its own call would open them a moment later. */
#ifndef SUBSTRATE_LIB_CALLERS_H
#define SUBSTRATE_LIB_CALLERS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The kernel follows 40 (MAXSYMLINKS, path_resolution(7)), and then there is the file. */
#define CALLERS_LINKS_MAX 41

/* From where names are looked up. */
struct view {
  pid_t caller;
  int base;   /* the folder of the last link; -1: still as the caller gave it */
  int folder; /* AT_FDCWD, or a descriptor of the caller's */
};

/* A process as procfs has it. */
struct caller {
  pid_t pid; /* of the process, whichever thread asks */
  pid_t parent;
};

/* The procfs of PID 1. */
extern int callers_proc;

/* -1 with errno: what it cannot open, its call cannot reach either, but for ELOOP, which may be ours. */
int callers_open(const struct view *view, const char *folder);
/* The path of an open folder, absolute; false, and empty, where it has none. */
bool callers_real(int fd, char real[PATH_MAX + 1]);
/* Writes the folder's real path and returns it, or the caller's own where it is one of PID 1's (`/dev/fd` leads to whoever
   asks). -1, and closed: it cannot be told. */
int callers_settle(const struct view *view, int fd, char real[PATH_MAX + 1]);

bool callers_is_dots(const char *leaf);
/* So many bytes of the caller's memory; false, with errno: not all of them can be read. */
bool callers_memory(pid_t caller, uint64_t address, void *data, size_t length);
/* A text there, with its NUL where it fits. Its length, `size` when it is longer, -1: it cannot be read. */
ssize_t callers_string(pid_t caller, uint64_t address, char *text, size_t size);
/* False, with errno, also when it is longer than a path can be. */
bool callers_text(pid_t caller, uint64_t address, char text[PATH_MAX]);
/* Parts a path into a folder, which is opened, and the leaf in it; slashes at its end are taken away. -1: there is none. */
int callers_part(const struct view *view, char *text, const char **leaf);

/* Reads who it is. False: it is gone, or procfs cannot be read. */
bool callers_identify(pid_t task, struct caller *caller);

#endif
