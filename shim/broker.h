/* Calls to the broker over its Unix socket. */
#ifndef SUBSTRATE_SHIM_BROKER_H
#define SUBSTRATE_SHIM_BROKER_H

#include "buffer.h"

/* A connection, and what has come that nobody has read. */
struct broker {
  int fd;
  struct buffer come;
};

struct answer {
  int status; /* of HTTP; 0: there was none */
  char *body;
};

/* False with errno: nobody listens there, or nobody may be asked. */
bool broker_open(struct broker *broker, const char *path);
/* Sends a POST and does not wait. */
bool broker_send(struct broker *broker, const char *path, const struct buffer *body);
/* The next answer, waited for at most so long. `status` is 0 when it does not come, or is none. A status below
   200 says that another answer will come. The body is the caller's. */
struct answer broker_answer(struct broker *broker, int seconds);
void broker_close(struct broker *broker);

#endif
