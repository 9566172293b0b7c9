/* The channel that Node gives a child it speaks JSON with (`stdio: "ipc"`): lines both ways, and sockets with ours.
   The lines with NODE_HANDLE are those of Node's own child_process, lib/internal/child_process.js. */
#ifndef SUBSTRATE_NETWORK_NODE_CHANNEL_H
#define SUBSTRATE_NETWORK_NODE_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>

#define NODE_CHANNEL_FD 3
/* The longest line that the broker sends: rules for some thousand ranges. */
#define NODE_LINE_MAX (1024 * 1024)

/* Makes the channel close-on-exec; exits when it is no socket. */
void node_open(void);

/* Sends one line, with a socket unless `fd` is -1. Waits until the broker has room; exits when the broker is gone. */
void node_send(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Reads what is there. Exits when the broker is gone. */
void node_receive(void);

/* The next whole line, without its end and NUL-terminated, valid until the next call; NULL: there is none. */
char *node_next_line(void);

/* The value of a line `{"name":"value"}`, terminated in place; NULL when it is another line. Values have no escapes:
   whoever sends one with a quote, a backslash or a control character sends a malformed line, which ends us. */
char *node_value(char *line, const char *name);

/* Text for a line of ours: what JSON would escape becomes `?`. */
void node_clean(char *text);

#endif
