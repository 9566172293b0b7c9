/* Reads content of untrusted trees: never through a link, never waiting for a pipe. */
#ifndef SUBSTRATE_CHANGES_CONTENT_H
#define SUBSTRATE_CHANGES_CONTENT_H

#include <stdbool.h>
#include <stdint.h>

#include "changes/paths.h"

/* Bytes read per listing: about a second of processor time. */
#define CONTENT_MAX (512UL * 1024 * 1024)

enum content { CONTENT_TAKEN, CONTENT_NONE, CONTENT_UNREADABLE, CONTENT_TOO_MUCH };

/* Hashes a file's bytes or a link's target; other types have no content. `budget`: bytes that may still be
   read. */
enum content content_hash(int folder, const char *name, const struct sight *sight, uint64_t *budget, char *hex);

/* A name in two open folders, with its state in each. */
struct pair {
  int upper, lower;
  const char *name;
  const struct sight *above, *below;
};

/* How a regular file is opened (paths.h). */
typedef int (*opener)(int folder, const char *name, struct stat *status);

/* True when type and content are the same. Unreadable content, and content beyond the budget, counts as
   different. */
bool content_same(const struct pair *pair, opener open_upper, uint64_t *budget);

#endif
