/* HTTP calls to the broker over a Unix socket. */
#ifndef SUBSTRATE_CLIENT_BROKER_H
#define SUBSTRATE_CLIENT_BROKER_H

#include "buffer.h"

/* A connection, with received bytes not yet parsed. */
struct broker {
  int fd;
  struct buffer come;
};

struct answer {
  int status; /* of HTTP; 0: no answer */
  char *head, *body;
};

/* Connects. False with errno; EAGAIN: the broker's queue stayed full. */
bool broker_open(struct broker *broker, const char *path);
/* Sends bytes. False after five seconds in which the broker takes none, and at the end of the connection. */
bool broker_write(struct broker *broker, const char *bytes, size_t length);
/* Sends a POST without waiting for the answer. */
bool broker_send(struct broker *broker, const char *path, const struct buffer *body);
/* Sends a GET without waiting for the answer. */
bool broker_get(struct broker *broker, const char *path);
/* Waits at most `seconds` for the next answer. `status` is 0 for no answer or invalid HTTP; below 200,
   another answer follows, after 101 (an upgrade) bytes of another protocol. The caller frees head and body. */
struct answer broker_answer(struct broker *broker, int seconds);
void broker_close(struct broker *broker);

#endif
