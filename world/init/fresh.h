/* Copies in place of what may be open for writing: whoever had the old one has it still, and nobody else sees it. */
#ifndef SUBSTRATE_FRESH_H
#define SUBSTRATE_FRESH_H

/* Puts a copy in the place of the file `leaf`, or of the folder with all files and links in it, with mode and time. `folder` must be
   closed to everybody else. 0, or an errno: EFBIG, EISDIR and ENOTSUP for what is not copied. */
int fresh_replace(int folder, const char *leaf);

#endif
