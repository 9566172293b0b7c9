/* Which program a shim stands for. */
#ifndef SUBSTRATE_SHIM_PROGRAM_H
#define SUBSTRATE_SHIM_PROGRAM_H

#include <limits.h>

#include "buffer.h"

struct program {
  const char *name;
  char path[PATH_MAX]; /* of the real one; empty: there is none */
  struct buffer others; /* PATH without the folders that hold a shim of this name: what the broker looks names up in */
  bool is_far; /* in a folder of `others` that the broker does not look into */
};

/* Folders of PATH that the broker looks into (broker/policy/program-paths.ts). */
#define MOST_FOLDERS 256

/* What the program itself is called. */
#define SHIM_FILE "substrate-shim"

/* The name of the program that this process stands for. */
void program_name(char name[NAME_MAX + 1], const char *first_word);
/* Looks behind the shims on PATH, as execvp(3) would without them. `name` is what the shim was started under. */
void program_find(struct program *program, const char *name);

#endif
