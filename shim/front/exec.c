#define _GNU_SOURCE
#include "exec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../client/terminal.h"
#include "../client/variables.h"
#include "../stream/call.h"
#include "../stream/standard.h"
#include "caller.h"
#include "keep.h"
#include "node.h"
#include "questions.h"
#include "request.h"

/* Pause between an unanswered question and the next call (api/cli/questions/ask-here.ts). */
#define AGAIN_SECONDS 1

static bool is_for_node(void) {
  const char *world = getenv("SUBSTRATE_WORLD");
  return (world != NULL && strcmp(world, "disabled") == 0) || !standard_is_open();
}

static bool nobody_denies(void) {
  return false;
}

/* How the questions of a call are put; NULL: nobody is asked. */
static const struct asker *asker_for(const struct options *options) {
  static const struct asker HERE = {questions_ask, questions_denied}, ELSEWHERE = {questions_say, nobody_denies};
  if (options->has_terminal || questions_possible()) return &HERE;
  return options->waits ? &ELSEWHERE : NULL;
}

static bool write_request(struct buffer *body, const struct caller *caller, const struct options *options,
                          const struct stream *stream) {
  const char *parent = variable("SUBSTRATE_PARENT_SPAN");
  char limit[48] = ",\"no_time_limit\":true";
  if (!request_add(body, caller, options)) return false;
  if (parent != NULL) buffer_field(body, "parent_span", parent);
  if (options->timeout_ms > 0) snprintf(limit, sizeof limit, ",\"timeout_ms\":%ld", options->timeout_ms);
  buffer_text(body, limit);
  if (options->keep) buffer_text(body, ",\"background\":\"keep\"");
  if (options->requires_approval) buffer_text(body, ",\"require_approval\":true");
  if (stream->has_terminal) terminal_add(body);
  else if (standard_outputs_are_one()) buffer_text(body, OUTPUTS_TOGETHER);
  /* Without the field the command would get a pipe that stays open (api/README.md). */
  if (stream->asker != NULL) buffer_text(body, QUESTIONS);
  buffer_text(body, stream->takes_input ? ",\"stdin\":true}" : ",\"stdin\":false}");
  return !body->failed && body->length <= MOST_REQUEST;
}

int exec_run(const struct options *options) {
  static struct caller caller;
  static struct stream stream;
  struct buffer body = {0};
  if (is_for_node() || !caller_read(&caller, options)) return TO_NODE;
  stream.has_terminal = options->has_terminal;
  stream.asker = asker_for(options);
  stream.waits = options->waits;
  stream.has_node = true;
  if (stream.asker != NULL && !questions_name(stream.call)) return TO_NODE;
  stream.takes_input = options->has_terminal || standard_has_input();
  if (!write_request(&body, &caller, options, &stream)) return TO_NODE;
  int code = call_run(&stream, caller.socket, &body);
  if (code == ASK_AGAIN) sleep(AGAIN_SECONDS);
  if (code == NOT_CALLED || code == ASK_AGAIN) return TO_NODE;
  if (options->keep && stream.has_ended && *stream.world != 0) keep_say(stream.world, options->agent);
  return call_end(&stream, code);
}
