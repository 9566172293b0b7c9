/* The system calls that change files, by their numbers: which names they are about to change. Pure. */
#ifndef SUBSTRATE_LIB_FILE_CALLS_H
#define SUBSTRATE_LIB_FILE_CALLS_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>

/* What is done to a name, as bits (schemas/world-frames.schema.json, TOUCHED). */
enum how { HOW_NAME = 1, HOW_WRITE = 2, HOW_MODE = 4, HOW_MOVED = 8, HOW_REMOVED = 16 };

#define FILE_NAMES_MAX 2

struct file_name {
  bool by_descriptor; /* where there is no text, or an empty one, `folder` is the file itself */
  bool follow;        /* a link in its last component stands for what it leads to */
  bool exchanged; /* the names of two files are (RENAME_EXCHANGE) */
  bool makes;     /* a new name: where one stands already, the call makes none, and may open what is there */
  bool removes;   /* a name that goes, and nothing else comes */
  uint8_t how;
  int folder;         /* AT_FDCWD, or a descriptor of the caller's */
  uint64_t address;   /* of the text, in the caller's memory */
  uint64_t open_how;  /* of openat2's flags there, which say the rest (file_call_opens); 0: nothing is missing */
};

/* Whether this number is one of these calls. */
bool file_call_is_one(int number);
/* How many names, in `names`; -1: it is none of these calls. */
int file_call_names(const struct seccomp_data *call, struct file_name names[FILE_NAMES_MAX]);
/* Fills in what open(2)'s flags say. False: with them nothing is changed. */
bool file_call_opens(struct file_name *name, uint64_t flags);

#endif
