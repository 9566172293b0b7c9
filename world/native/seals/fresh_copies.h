/* Replaces files that may be open for writing by copies: open descriptors keep the old file, which nobody
   else sees. */
#ifndef SUBSTRATE_SEALS_FRESH_COPIES_H
#define SUBSTRATE_SEALS_FRESH_COPIES_H

#include <stdbool.h>

/* Replaces the file `leaf`, or the folder with all its files and links, by a copy with the same mode and
   mtime. `folder` must be closed to other processes. Returns 0 or an errno: EFBIG, EISDIR and ENOTSUP for
   entries that are not copied. */
int fresh_replace(int folder, const char *leaf);
/* True when the file `leaf`, or every file in the folder, has a single name and could be copied. */
bool fresh_is_whole(int folder, const char *leaf);

#endif
