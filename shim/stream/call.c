#define _GNU_SOURCE
#include "call.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "../client/json.h"
#include "../client/terminal.h"
#include "events.h"
#include "follow.h"
#include "refusal.h"
#include "signals.h"

#define PATH "/v1/stream"

#define HEAD_SECONDS 10

#define SWITCHING_PROTOCOLS 101
#define NOT_FOUND 404

/* Sends the upgrade and the request in one write: the broker reads the request without waiting for a round. */
static bool ask(struct stream *stream, const struct buffer *body) {
  struct buffer all = {0};
  websocket_request(&all, stream->path == NULL ? PATH : stream->path, stream->call);
  if (body != NULL) websocket_add(&all, TEXT, body->data, body->length);
  bool sent = !all.failed && broker_write(&stream->broker, all.data, all.length);
  buffer_free(&all);
  return sent;
}

/* Waits without limit, as Node does. Returns the exit code after a signal, else GOES_ON. */
static int wait_for_answer(struct broker *broker) {
  struct pollfd answer = {broker->fd, POLLIN, 0};
  while (ppoll(&answer, 1, NULL, signals_mask()) < 0 && errno == EINTR) {
    if (signals_first() != 0) return 128 + signals_first();
  }
  return GOES_ON;
}

/* An answer of HTTP instead of an upgrade: a broker of an older version, or a refusal. Nothing has run. */
static int refused(const struct answer *answer) {
  size_t length = answer->status == 0 ? 0 : strlen(answer->body);
  struct json error = json_member(json_document(answer->body, length), "error");
  if (answer->status == 0) return refusal_no_reply();
  if (answer->status == NOT_FOUND) return NOT_CALLED;
  return error.text == NULL ? refusal_not_json(answer->body, length) : refusal_say(error);
}

/* Returns GOES_ON after the upgrade. Messages that came with the answer are received already. */
static int upgrade(struct stream *stream) {
  int code = wait_for_answer(&stream->broker);
  if (code != GOES_ON) return code;
  struct answer answer = broker_answer(&stream->broker, HEAD_SECONDS);
  if (answer.status != SWITCHING_PROTOCOLS) return refused(&answer);
  const struct buffer *come = &stream->broker.come;
  if (!websocket_accepts(answer.head) || come->length > sizeof stream->received) return refusal_not_json(answer.head, strlen(answer.head));
  memcpy(stream->received, come->data, come->length);
  stream->end = come->length;
  return GOES_ON;
}

/* Returns NOT_CALLED where the request did not leave as a whole: a part of a request runs nothing. */
static int call(struct stream *stream, const struct buffer *body) {
  int code = ask(stream, body) ? upgrade(stream) : NOT_CALLED;
  if (code == GOES_ON) code = follow(stream);
  if (code >= 0) return code;
  signals_let();
  return signals_first() != 0 ? 128 + signals_first() : code;
}

int call_run(struct stream *stream, const char *socket, const struct buffer *body) {
  if (!broker_open(&stream->broker, socket)) return NOT_CALLED;
  signals_take(stream->has_terminal);
  return call(stream, body);
}

int call_end(const struct stream *stream, int code) {
  bool interrupted = stream->interrupted || (signals_first() == SIGINT && !stream->started);
  if (code == 128 + SIGINT && interrupted && terminal_is_in_front()) signals_interrupt();
  return code;
}
