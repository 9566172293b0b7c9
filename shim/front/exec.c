#define _GNU_SOURCE
#include "exec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../client/variables.h"
#include "../stream/call.h"
#include "../stream/standard.h"
#include "caller.h"
#include "node.h"
#include "questions.h"
#include "request.h"

static bool is_for_node(void) {
  const char *world = getenv("SUBSTRATE_WORLD");
  return (world != NULL && strcmp(world, "disabled") == 0) || !standard_is_open();
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
  if (stream->asker != NULL) buffer_text(body, QUESTIONS);
  buffer_text(body, stream->takes_input ? ",\"stdin\":true}" : ",\"stdin\":false}");
  return !body->failed && body->length <= MOST_REQUEST;
}

int exec_run(const struct options *options) {
  static const struct asker ASKER = {questions_ask, questions_end};
  static struct caller caller;
  static struct stream stream;
  struct buffer body = {0};
  if (is_for_node() || !caller_read(&caller, options)) return TO_NODE;
  if (questions_possible()) stream.asker = &ASKER;
  if (stream.asker != NULL && !questions_name(stream.call)) return TO_NODE;
  stream.takes_input = standard_has_input();
  if (!write_request(&body, &caller, options, &stream)) return TO_NODE;
  int code = call_run(&stream, caller.socket, &body);
  return code == NOT_CALLED ? TO_NODE : code;
}
