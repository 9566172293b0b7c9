/* Own descriptors beside inherited ones. */
#ifndef SUBSTRATE_CLIENT_DESCRIPTORS_H
#define SUBSTRATE_CLIENT_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>

/* Moves a new descriptor above 2, closed at exec(2): a program may start without descriptors 0 to 2, and
   messages for people still go to descriptor 2. Negative in, negative out, with errno kept. */
int above_standard(int fd);
/* Writes all bytes. Waits where an inherited descriptor is full and another process made the open file
   non-blocking. False with errno. */
bool write_all(int fd, const char *bytes, size_t length);

#endif
