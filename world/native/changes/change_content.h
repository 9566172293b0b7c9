/* Reads content of untrusted trees: never through a link, never waiting for a pipe. */
#ifndef SUBSTRATE_CHANGES_CHANGE_CONTENT_H
#define SUBSTRATE_CHANGES_CHANGE_CONTENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* Bytes read per listing: about a second of processor time. */
#define CONTENT_MAX (512UL * 1024 * 1024)

/* A name in an open folder, with its stat. */
struct named_file {
  int folder;
  const char *name;
  const struct stat *status;
};

enum content { CONTENT_TAKEN, CONTENT_NONE, CONTENT_UNREADABLE, CONTENT_TOO_MUCH };

/* Hashes a file's bytes or a link's target; other types have no content. `budget`: bytes that may still be
   read. */
enum content content_hash(const struct named_file *place, uint64_t *budget, char *hex);

/* True when two files of the same size, or two links, have the same content. Unreadable content counts as
   different. */
bool content_same(const struct named_file *one, const struct named_file *other, uint64_t *budget);

#endif
