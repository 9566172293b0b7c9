/* The state of a running command on GET /v1/stream. All zero before the call, but for the fields above `broker`. */
#ifndef SUBSTRATE_STREAM_STATE_H
#define SUBSTRATE_STREAM_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "../client/broker.h"
#include "websocket.h"

/* Output passes through this much memory, whatever the command prints: the rest waits in the kernel, then in the
   broker, then in the command. */
#define RECEIVED_SIZE 65536

/* Bytes of input in one message: the protocol takes twice as many. */
#define INPUT_FRAME 32768

/* Not an exit code: the command goes on. */
#define GOES_ON (-1)
/* Not an exit code: nothing has run. The request did not leave as a whole, or the broker has no streams. */
#define NOT_CALLED (-2)
/* Nothing has run either: nobody answered the question in time, and `stream->waits`. */
#define ASK_AGAIN (-3)

/* A UUID and its end. */
#define CALL_SIZE 37

/* The id of a world, and its end. */
#define WORLD_SIZE 48

/* How a person at the terminal is asked about a call; `denied` says whether the person has denied. */
struct asker {
  void (*ask)(const char *call, const char *approval);
  bool (*denied)(void);
};

/* Sees each input before it is sent; true: this process leaves, and the command goes on. */
typedef bool (*leaves)(const char *bytes, size_t length);

struct stream {
  bool takes_input;          /* standard input is passed on, and not at its end */
  bool has_terminal;         /* the command's terminal is shown at this process's */
  const struct asker *asker; /* NULL: nobody can be asked */
  bool waits;                /* a question without an answer is asked again: by Node */
  bool has_node;             /* Node takes a call over that the broker is too old for */
  const char *path;          /* NULL: GET /v1/stream; else that of a command to attach to */
  leaves leaves;             /* NULL: no key leaves */
  char call[CALL_SIZE];      /* the request id, by which the questions are found; empty without one */
  struct broker broker;
  struct frames frames;
  char received[RECEIVED_SIZE];
  char input[1 + INPUT_FRAME]; /* a message of standard input */
  size_t begin, end;           /* received bytes not read yet */
  struct buffer unsent;        /* frames; the first `sent` bytes are */
  size_t sent;
  struct buffer text; /* of a text message whose rest is to come */
  struct buffer ping; /* the same of a ping */
  int channel;        /* of the binary message: its first byte; 0 before that byte */
  const char *output; /* bytes of `received` to write to `output_fd` before anything else is read */
  size_t output_length;
  int output_fd;
  bool started;   /* the command is, so takes input and signals */
  char world[WORLD_SIZE]; /* where the command ran */
  bool passed;    /* a signal was passed on */
  bool has_ended;   /* the broker has told the command's end */
  bool interrupted; /* the command ended by SIGINT */
  bool left;      /* the person has typed what leaves the command running */
  bool covered;   /* a question stands on the command's screen */
  time_t suspended; /* when Ctrl-Z was typed, by CLOCK_MONOTONIC; 0: not since the last stop */
  size_t untaken; /* bytes of input sent and not yet taken by the command */
};

#endif
