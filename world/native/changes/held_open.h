#ifndef HELD_OPEN_H
#define HELD_OPEN_H

#include <sys/stat.h>

/* Opens a regular file for reading, following no link and waiting for nothing. -1 with errno; EINVAL when it is none. */
int open_plainly(int folder, const char *name, struct stat *status);
/* The same; one of our own that its mode does not let us read as well, whose mode is then set back. */
int open_readable(int folder, const char *name, struct stat *status);

#endif
