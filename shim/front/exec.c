#define _GNU_SOURCE
#include "exec.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../client/json.h"
#include "caller.h"
#include "node.h"
#include "questions.h"
#include "refusal.h"
#include "request.h"
#include "signals.h"
#include "standard.h"
#include "stream.h"

#define PATH "/v1/stream"

/* The broker takes requests of 10 MiB at most, and says so in words that Node prints. */
#define MOST_REQUEST (8UL << 20)

#define HEAD_SECONDS 10

/* Longest wait that a request may ask for; the policy's `approval.timeout_secs` ends questions sooner
   (api/cli/questions/ask-here.ts). */
#define QUESTIONS ",\"approval_wait_ms\":86400000,\"questions\":true"

#define SWITCHING_PROTOCOLS 101
#define NOT_FOUND 404

static bool is_for_node(void) {
  const char *world = getenv("SUBSTRATE_WORLD");
  return (world != NULL && strcmp(world, "disabled") == 0) || !standard_is_open();
}

/* A terminal's input stays for the shell, and the null device has none. */
static bool has_input(void) {
  return isatty(STDIN_FILENO) != 1 && !standard_input_is_null();
}

static bool write_request(struct buffer *body, const struct caller *caller, const struct options *options,
                          const struct stream *stream) {
  const char *parent = variable("SUBSTRATE_PARENT_SPAN");
  char limit[48] = ",\"no_time_limit\":true";
  if (!request_add(body, caller, options)) return false;
  if (parent != NULL) buffer_field(body, "parent_span", parent);
  if (options->timeout_ms > 0) snprintf(limit, sizeof limit, ",\"timeout_ms\":%ld", options->timeout_ms);
  buffer_text(body, limit);
  /* Without the field the command would get a pipe that stays open (api/README.md). */
  if (*stream->call != 0) buffer_text(body, QUESTIONS);
  buffer_text(body, stream->takes_input ? ",\"stdin\":true}" : ",\"stdin\":false}");
  return !body->failed && body->length <= MOST_REQUEST;
}

/* Sends the upgrade and the request in one write: the broker reads the request without waiting for a round. */
static bool ask(struct stream *stream, const struct buffer *body) {
  struct buffer all = {0};
  websocket_request(&all, PATH, stream->call);
  websocket_add(&all, TEXT, body->data, body->length);
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
  if (answer->status == NOT_FOUND) return TO_NODE;
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

/* Returns TO_NODE where the request did not leave as a whole: a part of a request runs nothing. */
static int call(struct stream *stream, const struct buffer *body) {
  int code = ask(stream, body) ? upgrade(stream) : TO_NODE;
  if (code == GOES_ON) code = stream_follow(stream);
  questions_end();
  if (code == TO_NODE) signals_let();
  return code == TO_NODE && signals_first() != 0 ? 128 + signals_first() : code;
}

int exec_run(const struct options *options) {
  static struct caller caller;
  static struct stream stream;
  struct buffer body = {0};
  if (is_for_node() || !caller_read(&caller, options)) return TO_NODE;
  if (questions_possible() && !questions_name(stream.call)) return TO_NODE;
  stream.takes_input = has_input();
  if (!write_request(&body, &caller, options, &stream)) return TO_NODE;
  if (!broker_open(&stream.broker, caller.socket)) return TO_NODE;
  signals_take();
  return call(&stream, &body);
}
