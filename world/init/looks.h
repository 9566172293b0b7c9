/* `substrate-init looks ROOT`: what stands under names below a folder, and what it holds, for a listing of many changes. */
#ifndef SUBSTRATE_LOOKS_H
#define SUBSTRATE_LOOKS_H

#include <stdint.h>

#include "sha256.h"

/* LOOK_GONE: nothing, or only behind a link. */
enum look_state { LOOK_GONE, LOOK_UNSEEN, LOOK_BARE, LOOK_DIGEST, LOOK_UNREADABLE, LOOK_TOO_MUCH };

/* One for each name, in the order of the names; as the processor has its numbers. */
struct look {
  uint32_t state;
  uint32_t mode; /* st_mode */
  uint64_t size; /* bytes */
  char digest[SHA256_HEX]; /* of LOOK_DIGEST: of a file's bytes or of a link's target */
};

/* Reads names relative to `root` from standard input, each with its NUL, and writes a `struct look` for each. Where the files
   have more than CONTENT_MAX bytes together none of them is read. Exits with 1 and says nothing when it cannot go on. */
_Noreturn void looks_run(const char *root);

#endif
