/* Copies in place of what may be open for writing: whoever had the old one has it still, and nobody else sees it. */
#ifndef SUBSTRATE_SEALS_FRESH_COPIES_H
#define SUBSTRATE_SEALS_FRESH_COPIES_H

#include <stdbool.h>

/* Puts a copy in the place of the file `leaf`, or of the folder with all files and links in it, with mode and time. `folder` must be
   closed to everybody else. 0, or an errno: EFBIG, EISDIR and ENOTSUP for what is not copied. */
int fresh_replace(int folder, const char *leaf);
/* Whether the file `leaf`, or the folder with all that lies in it, is known by no second name and could be copied. */
bool fresh_is_whole(int folder, const char *leaf);

#endif
