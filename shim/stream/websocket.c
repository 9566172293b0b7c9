#define _GNU_SOURCE
#include "websocket.h"

#include <string.h>
#include <sys/random.h>

/* Key and answer of RFC 6455, 1.3. The key keeps caches from answering, and no cache stands on a Unix socket: a
   constant proves as well that the server speaks WebSocket, without SHA-1. */
#define KEY "dGhlIHNhbXBsZSBub25jZQ=="
#define ACCEPTED "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

/* Bits and limits of a frame's head (RFC 6455, 5.2 and 5.5). */
#define FINAL 0x80
#define RESERVED 0x70
#define OPCODE 0x0f
#define MASKED 0x80
#define LENGTH 0x7f
#define LENGTH_16 126
#define LENGTH_64 127
#define MOST_CONTROL 125
#define CONTROL 0x08

void websocket_request(struct buffer *to, const char *path, const char *call) {
  buffer_text(to, "GET ");
  buffer_text(to, path);
  buffer_text(to, " HTTP/1.1\r\nhost: substrate\r\nupgrade: websocket\r\nconnection: Upgrade\r\n"
                  "sec-websocket-version: 13\r\nsec-websocket-key: " KEY "\r\n");
  if (*call != 0) {
    buffer_text(to, "x-request-id: ");
    buffer_text(to, call);
    buffer_text(to, "\r\n");
  }
  buffer_text(to, "\r\n");
}

bool websocket_accepts(const char *head) {
  static const char NAME[] = "\r\nsec-websocket-accept:";
  const char *at = strcasestr(head, NAME);
  if (at == NULL) return false;
  at += strlen(NAME);
  at += strspn(at, " \t");
  return strncmp(at, ACCEPTED, strlen(ACCEPTED)) == 0;
}

/* Length of the whole head, by the bytes that have come. */
static size_t head_length(const struct frames *frames) {
  if (frames->head_length < 2) return 2;
  unsigned char length = frames->head[1] & LENGTH;
  return length == LENGTH_16 ? 4 : length == LENGTH_64 ? 10 : 2;
}

static uint64_t payload_length(const struct frames *frames) {
  uint64_t length = 0;
  if (frames->head_length == 2) return frames->head[1] & LENGTH;
  for (size_t i = 2; i < frames->head_length; i++) length = length << 8 | frames->head[i];
  return length;
}

/* Reads a complete head. A control frame may stand inside a message of several frames (RFC 6455, 5.4). */
static bool begin_frame(struct frames *frames) {
  unsigned char opcode = frames->head[0] & OPCODE;
  bool control = (opcode & CONTROL) != 0, final = (frames->head[0] & FINAL) != 0;
  frames->left = payload_length(frames);
  if ((frames->head[0] & RESERVED) != 0 || (frames->head[1] & MASKED) != 0) return false;
  if (control) return opcode <= PONG && final && frames->left <= MOST_CONTROL;
  if (opcode > BINARY || (opcode == CONTINUATION) != (frames->message != CONTINUATION)) return false;
  if (opcode != CONTINUATION) {
    frames->message = (enum opcode)opcode;
    frames->begins = true;
  }
  frames->final = final;
  return true;
}

static bool is_control(const struct frames *frames) {
  return (frames->head[0] & CONTROL) != 0;
}

/* Takes what has come of the payload. A control frame's payload is passed on as a message of one or more pieces. */
static struct piece take(struct frames *frames, const char *bytes, size_t length) {
  bool control = is_control(frames);
  struct piece piece = {.bytes = bytes, .length = length < frames->left ? length : (size_t)frames->left};
  piece.opcode = control ? (enum opcode)(frames->head[0] & OPCODE) : frames->message;
  piece.first = control ? frames->left == payload_length(frames) : frames->begins;
  frames->left -= piece.length;
  piece.last = frames->left == 0 && (control || frames->final);
  if (!control) frames->begins = false;
  if (!control && piece.last) frames->message = CONTINUATION;
  if (frames->left == 0) frames->inside = false, frames->head_length = 0;
  return piece;
}

enum read websocket_read(struct frames *frames, const char *bytes, size_t length, size_t *used, struct piece *piece) {
  *used = 0;
  while (!frames->inside) {
    if (frames->head_length == head_length(frames)) {
      if (!begin_frame(frames)) return WRONG;
      frames->inside = true;
    } else if (*used == length) {
      return MORE;
    } else {
      frames->head[frames->head_length++] = (unsigned char)bytes[(*used)++];
    }
  }
  if (*used == length && frames->left > 0) return MORE;
  *piece = take(frames, bytes + *used, length - *used);
  *used += piece->length;
  return PIECE;
}

void websocket_add(struct buffer *to, enum opcode opcode, const char *bytes, size_t length) {
  unsigned char head[14] = {(unsigned char)(FINAL | opcode)};
  size_t size = length < LENGTH_16 ? 2 : length <= UINT16_MAX ? 4 : 10;
  head[1] = MASKED | (unsigned char)(size == 2 ? length : size == 4 ? LENGTH_16 : LENGTH_64);
  for (size_t i = 2; i < size; i++) head[i] = (unsigned char)((uint64_t)length >> 8 * (size - 1 - i));
  /* A mask protects proxies from bytes chosen by a page in a browser (RFC 6455, 10.3). Here the mask only has to
     be there: without random bytes all zeros are right too. */
  if (getrandom(head + size, 4, GRND_NONBLOCK) != 4) memset(head + size, 0, 4);
  buffer_add(to, (const char *)head, size + 4);
  size_t begin = to->length;
  buffer_add(to, bytes, length);
  if (to->failed) return;
  for (size_t i = 0; i < length; i++) to->data[begin + i] ^= (char)head[size + i % 4];
}
