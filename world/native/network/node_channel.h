/* The JSON channel of Node's child processes (`stdio: "ipc"`): lines both ways, with sockets attached to sent
   lines. NODE_HANDLE lines follow Node's own protocol, lib/internal/child_process.js. */
#ifndef SUBSTRATE_NETWORK_NODE_CHANNEL_H
#define SUBSTRATE_NETWORK_NODE_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>

#define NODE_CHANNEL_FD 3
/* Longest line of the broker: rules for some thousand ranges. */
#define NODE_LINE_MAX (1024 * 1024)

/* Makes the channel close-on-exec; exits if the descriptor is not a socket. */
void node_open(void);

/* Sends a line, with a socket unless `fd` is -1. Waits until the broker has room; exits when the broker is
   gone. */
void node_send(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Reads available bytes. Exits when the broker is gone. */
void node_receive(void);

/* Returns the next whole line, NUL-terminated without its newline, valid until the next call; NULL: no whole
   line. */
char *node_next_line(void);

/* Returns the value of a line `{"name":"value"}`, terminated in place; NULL for another line. Values have no
   escapes: a line with a quote, backslash or control character is malformed and ends the process. */
char *node_value(char *line, const char *name);

/* Prepares text for a sent line: characters that JSON escapes become `?`. */
void node_clean(char *text);

#endif
