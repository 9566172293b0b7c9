/* The client's half of a WebSocket (RFC 6455), without extensions. */
#ifndef SUBSTRATE_STREAM_WEBSOCKET_H
#define SUBSTRATE_STREAM_WEBSOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../client/buffer.h"

enum opcode { CONTINUATION = 0, TEXT = 1, BINARY = 2, CLOSE = 8, PING = 9, PONG = 10 };

/* A part of a received message. Payloads are passed on as they come, in parts of any size. */
struct piece {
  enum opcode opcode; /* of the message, so never CONTINUATION */
  const char *bytes;
  size_t length;
  bool first, last; /* the message begins, and ends, with this piece */
};

/* Reader of frames. All zero at the start of a connection. */
struct frames {
  unsigned char head[10];
  size_t head_length;  /* bytes of the next frame's head that have come */
  uint64_t left;       /* bytes of the frame's payload that have not */
  bool inside;         /* the head is complete, and the frame not at its end */
  bool begins;         /* no piece of the message has been passed on */
  bool final;          /* the frame is the last of its message */
  enum opcode message; /* of the message that goes on; CONTINUATION between messages */
};

enum read { PIECE, MORE, WRONG };

/* Request for the upgrade of a connection. */
void websocket_request(struct buffer *to, const char *path, const char *call);
/* Whether the head of an answer 101 accepts that request. */
bool websocket_accepts(const char *head);

/* Takes the next piece from received bytes; `used` of them are done. MORE: all are, and no piece was among them.
   WRONG: the server breaks the protocol. */
enum read websocket_read(struct frames *frames, const char *bytes, size_t length, size_t *used, struct piece *piece);

/* Adds a message in one frame, masked. */
void websocket_add(struct buffer *to, enum opcode opcode, const char *bytes, size_t length);

#endif
