/* The `.gitignore` files from a repository's root down to a folder. */
#ifndef SUBSTRATE_FILES_IGNORES_H
#define SUBSTRATE_FILES_IGNORES_H

#include <stdbool.h>
#include <stddef.h>

struct ignores {
  struct ignores *above;
  /* The folder's path below the top, empty or ended by a slash. */
  char *prefix;
  char *text;
  char **lines;
  size_t count;
};

/* Reads a folder's file. NULL when it has none: then `above` holds. `prefix` is copied. */
struct ignores *ignores_read(int folder, const char *prefix, struct ignores *above);
/* Frees what `ignores_read` gave for a folder; returns `above`. */
struct ignores *ignores_free(struct ignores *ignores);
/* Whether git would ignore a name, given by its path below the top. */
bool ignores_name(const struct ignores *ignores, const char *path, bool is_folder);

#endif
