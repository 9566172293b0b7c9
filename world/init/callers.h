/* Folders as a caller names them, opened as its own call would open them a moment later. */
#ifndef SUBSTRATE_CALLERS_H
#define SUBSTRATE_CALLERS_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/* From where names are looked up. */
struct view {
  pid_t caller;
  int base;   /* the folder of the last link; -1: still as the caller gave it */
  int folder; /* AT_FDCWD, or a descriptor of the caller's */
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

#endif
