#ifndef HELD_BYTES_H
#define HELD_BYTES_H

#include <sys/stat.h>

/* Copies a file's bytes, holes as holes. -1 with errno. */
int copy_bytes(int from, int to, const struct stat *status);

#endif
