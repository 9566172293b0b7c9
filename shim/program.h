/* Resolves the program behind a shim. */
#ifndef SUBSTRATE_SHIM_PROGRAM_H
#define SUBSTRATE_SHIM_PROGRAM_H

#include <limits.h>

#include "client/buffer.h"

struct program {
  const char *name;
  char path[PATH_MAX]; /* of the real program; empty: not installed */
  struct buffer others; /* PATH without the folders of shims of the name: the broker's search path */
  char home[PATH_MAX]; /* SUBSTRATE_HOME around the folder of the shims on PATH; empty: none is known by it */
  bool is_far; /* in a folder of `others` beyond MOST_FOLDERS, which the broker does not search */
};

/* Folders of PATH searched by the broker (broker/policy/program-paths.ts). */
#define MOST_FOLDERS 256

/* File name of the shim's own binary. */
#define SHIM_FILE "substrate-shim"

/* Stores the name of the program behind the shim. */
void program_name(char name[NAME_MAX + 1], const char *first_word);
/* Finds the program on PATH as execvp(3) would without shims. `name`: the shim's name at the start. */
void program_find(struct program *program, const char *name);

#endif
