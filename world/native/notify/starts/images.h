/* The file that a start of a program names: found as the caller's own execve will find it, a moment later. */
#ifndef SUBSTRATE_NOTIFY_STARTS_IMAGES_H
#define SUBSTRATE_NOTIFY_STARTS_IMAGES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* BINPRM_BUF_SIZE of binfmts.h: what the kernel reads to know what a file is. */
#define IMAGE_HEAD 256

enum image_found {
  IMAGE_FOUND,
  IMAGE_MISSING, /* nothing that could run: its call fails, with `error` */
  IMAGE_UNKNOWN  /* something may run, and it cannot be told what */
};

struct image {
  char called[PATH_MAX]; /* as it was asked for, empty for a descriptor */
  bool mapped; /* by a dynamic loader, which needs no right to run it: filled in as well */
  char path[2 * PATH_MAX]; /* its real one; empty: it has no name */
  struct stat stat;
  bool writable;      /* it does not lie on a mount that is read-only for commands */
  const char *unknown; /* IMAGE_UNKNOWN: why */
  int error;          /* IMAGE_MISSING */
  size_t head_length; /* 0: it is no script */
  char head[IMAGE_HEAD + 1];
};

/* `called` and `mapped` are filled in by whoever asks. `folder` is AT_FDCWD or a descriptor of the caller's; `flags` are those of execveat(2). */
enum image_found image_find(pid_t caller, int folder, int flags, struct image *image);
/* Whether it did not change for so long that another change would have another ctime. */
bool image_is_settled(const struct image *image);
/* The file itself, to read from, by the path that was found. -1: it is another one by now, or cannot be read. */
int image_open(const struct image *image);

#endif
