/* Files that a start would run: the named file, its interpreters, and a program run by the dynamic loader. */
#ifndef SUBSTRATE_NOTIFY_STARTS_TARGET_H
#define SUBSTRATE_NOTIFY_STARTS_TARGET_H

#include <linux/seccomp.h>
#include <stdbool.h>

#include "notify/starts/images.h"
#include "notify/starts/words.h"

struct gate;

/* The kernel follows five #! lines (exec_binprm); the program and a program run by a loader come after. */
#define TARGET_FILES 8

struct target {
  int count; /* files; the first is the requested file */
  struct image images[TARGET_FILES];
  struct words words[TARGET_FILES];
  const char *unknown; /* reason why the final program is unknown, or NULL */
  const char *folder;  /* base of relative names, NULL: the caller's own */
  int error;           /* for IMAGE_MISSING: errno of the call */
};

/* Reads the file and arguments of the caller's call. */
enum image_found target_read(struct target *target, const struct seccomp_notif *notice);
/* Reads the file at `path` instead, relative to `folder`, for the runner `caller`; the caller adds its arguments. */
enum image_found target_begin(struct target *target, pid_t caller, const char *folder, const char *path);
/* Adds the interpreters and loaded programs behind the last file. */
void target_follow(struct target *target, struct gate *gate, pid_t caller);

#endif
