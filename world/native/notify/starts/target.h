/* What a start would run: the file that it names, and those that the kernel and the dynamic loader make of it. */
#ifndef SUBSTRATE_NOTIFY_STARTS_TARGET_H
#define SUBSTRATE_NOTIFY_STARTS_TARGET_H

#include <linux/seccomp.h>
#include <stdbool.h>

#include "notify/starts/images.h"
#include "notify/starts/words.h"

struct gate;

/* The kernel follows five #! lines (exec_binprm); then comes the program, and one that a loader runs. */
#define TARGET_FILES 8

struct target {
  int count; /* the first is what was asked for */
  struct image images[TARGET_FILES];
  struct words words[TARGET_FILES];
  const char *unknown; /* why it is not known what would run, NULL: it is known */
  const char *folder;  /* where relative names begin, NULL: in the caller's own */
  int error;           /* IMAGE_MISSING: what the call will fail with */
};

/* Reads what the caller asks for. */
enum image_found target_read(struct target *target, const struct seccomp_notif *notice);
/* Reads this file instead, as one would that stands in the folder; its words are the caller's to add. */
enum image_found target_begin(struct target *target, pid_t caller, const char *folder, const char *path);
/* Adds what it leads to. */
void target_follow(struct target *target, struct gate *gate, pid_t caller);

#endif
