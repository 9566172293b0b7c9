/* connect(2), sendto(2) and close(2) as PID 1 makes them on a caller's socket, never blocking. */
#ifndef SUBSTRATE_NOTIFY_CONNECTS_DIAL_CALLS_H
#define SUBSTRATE_NOTIFY_CONNECTS_DIAL_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "notify/connects/dial_parts.h"

/* Data to send, with the caller's `flags`. */
struct dial_data {
  int flags;
  size_t size;
  const uint8_t *bytes;
};

/* Installs the SIGALRM handler. Call before any command runs. */
void dial_calls_open(void);
/* Each returns 0 or an errno; `blocks` says whether the caller's own call would wait. */
int dial_connect(int socket, const struct dial_address *address, bool *blocks);
int dial_send(int socket, const struct dial_address *address, const struct dial_data *data, int64_t *sent, bool *blocks);
/* Closes PID 1's duplicate, keeping errno. */
void dial_close(int socket);

#endif
