/* System calls that change files, by number, and the names each is about to change. Pure. */
#ifndef SUBSTRATE_LIB_FILE_CALLS_H
#define SUBSTRATE_LIB_FILE_CALLS_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>

/* Kinds of change, as bits (schemas/world-frames.schema.json, TOUCHED). */
enum how { HOW_NAME = 1, HOW_WRITE = 2, HOW_MODE = 4, HOW_MOVED = 8, HOW_REMOVED = 16 };

#define FILE_NAMES_MAX 2

struct file_name {
  bool by_descriptor; /* with an empty or missing path, `folder` is the target file */
  bool follow;        /* a link in the last component is followed */
  bool exchanged; /* two files exchange their names (RENAME_EXCHANGE) */
  bool makes;     /* a new name: if the name exists, the call fails or opens the existing file */
  bool exclusive; /* the call fails where the name exists */
  bool removes;   /* the name is removed without replacement */
  uint8_t how;
  int folder;         /* AT_FDCWD, or a descriptor of the caller */
  uint64_t address;   /* of the path, in the caller's memory */
  uint64_t open_how;  /* address of openat2's flags, still to be read (file_call_opens); 0: complete */
};

/* True for the number of such a call. */
bool file_call_is_one(int number);
/* Fills in `names` and returns their number; -1: not such a call. */
int file_call_names(const struct seccomp_data *call, struct file_name names[FILE_NAMES_MAX]);
/* Completes a name by the flags of open(2). False: these flags change nothing. */
bool file_call_opens(struct file_name *name, uint64_t flags);

#endif
