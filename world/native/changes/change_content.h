/* What stands in files, read where nobody is trusted: never through a link, never waiting for a pipe. */
#ifndef SUBSTRATE_CHANGES_CHANGE_CONTENT_H
#define SUBSTRATE_CHANGES_CHANGE_CONTENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* Bytes that one listing reads at most: a second or so of one processor. */
#define CONTENT_MAX (512UL * 1024 * 1024)

/* A name in an open folder, as it was looked at. */
struct named_file {
  int folder;
  const char *name;
  const struct stat *status;
};

enum content { CONTENT_TAKEN, CONTENT_NONE, CONTENT_UNREADABLE, CONTENT_TOO_MUCH };

/* The digest of a file's bytes or of a link's target; all else has none. `budget` is what may still be read. */
enum content content_hash(const struct named_file *place, uint64_t *budget, char *hex);

/* Whether two files of the same size, or two links, hold the same. What cannot be told is not the same. */
bool content_same(const struct named_file *one, const struct named_file *other, uint64_t *budget);

#endif
