/* Reading standard input and writing the standard outputs without waiting. */
#ifndef SUBSTRATE_STREAM_STANDARD_H
#define SUBSTRATE_STREAM_STANDARD_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether descriptors 0 to 2 are open. */
bool standard_is_open(void);
/* Opens the null device where one of them is closed. False with errno. */
bool standard_open(void);
/* Whether a command reads standard input: not a terminal's, which stays for the shell, and not the null device. */
bool standard_has_input(void);
/* Whether descriptors 1 and 2 are the same open file, pipe or terminal, as after 2>&1: over two pipes the order of what a command writes
   would be lost. */
bool standard_outputs_are_one(void);
/* The field that a front or a shim adds to its request then, behind another one. */
#define OUTPUTS_TOGETHER ",\"outputs\":\"together\""

/* As read(2) and write(2) on a descriptor that poll(2) found ready, with errno EAGAIN instead of waiting. The open
   files of descriptors 0 to 2 belong to other processes too, so O_NONBLOCK is never set. */
ssize_t read_now(int fd, char *to, size_t size);
ssize_t write_now(int fd, const char *bytes, size_t length);

#endif
