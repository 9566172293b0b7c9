/* Finds the file of a program start, as the caller's own execve will find the file a moment later. */
#ifndef SUBSTRATE_NOTIFY_STARTS_IMAGES_H
#define SUBSTRATE_NOTIFY_STARTS_IMAGES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* BINPRM_BUF_SIZE of binfmts.h: bytes that the kernel reads to recognise a file's format. */
#define IMAGE_HEAD 256

enum image_found {
  IMAGE_FOUND,
  IMAGE_MISSING, /* no runnable file: the call fails, with `error` */
  IMAGE_UNKNOWN  /* possibly a runnable file, but PID 1 cannot tell which */
};

struct image {
  char called[PATH_MAX]; /* the path as the caller gave it, empty for a descriptor */
  bool mapped; /* run by a dynamic loader, without execute permission; set by the caller */
  bool of_runner; /* looked up for the runner, which makes no namespaces; set by the caller */
  char path[2 * PATH_MAX]; /* real path; empty: the file has no name */
  struct stat stat;
  bool writable;      /* false on a mount that commands see read-only */
  const char *unknown; /* the reason for IMAGE_UNKNOWN */
  int error;          /* the errno for IMAGE_MISSING */
  size_t head_length; /* 0: not a script */
  char head[IMAGE_HEAD + 1];
};

/* Finds the file. The caller of image_find sets `called`, `mapped` and `of_runner`. `folder`: AT_FDCWD or a descriptor of
   the process `caller`; `flags`: as for execveat(2). */
enum image_found image_find(pid_t caller, int folder, int flags, struct image *image);
/* True when the last change is old enough for another change to get a new ctime. */
bool image_is_settled(const struct image *image);
/* Opens the file at `path` for reading. -1: `path` now leads to another file, or cannot be read. */
int image_open(const struct image *image);

#endif
