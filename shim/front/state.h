/* The state of a running command on GET /v1/stream. */
#ifndef SUBSTRATE_FRONT_STATE_H
#define SUBSTRATE_FRONT_STATE_H

#include <stdbool.h>
#include <stddef.h>

#include "../client/broker.h"
#include "questions.h"
#include "websocket.h"

/* Output passes through this much memory, whatever the command prints: the rest waits in the kernel, then in the
   broker, then in the command. */
#define RECEIVED_SIZE 65536

/* Not an exit code: the command goes on. */
#define GOES_ON (-1)

struct stream {
  struct broker broker;
  char call[CALL_SIZE]; /* the request id; empty: nobody can be asked */
  struct frames frames;
  char received[RECEIVED_SIZE];
  size_t begin, end;    /* received bytes not read yet */
  struct buffer unsent; /* frames; the first `sent` bytes are */
  size_t sent;
  struct buffer text; /* of a text message whose rest is to come */
  struct buffer ping; /* the same of a ping */
  int channel;        /* of the binary message: its first byte; 0 before that byte */
  const char *output; /* bytes of `received` to write to `output_fd` before anything else is read */
  size_t output_length;
  int output_fd;
  bool takes_input; /* standard input is passed on, and not at its end */
  bool started;     /* the command is, so takes input and signals */
  bool passed;      /* a signal was passed on */
  size_t untaken;   /* bytes of input sent and not yet taken by the command */
};

#endif
