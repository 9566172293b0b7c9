#define _GNU_SOURCE
#include "run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../client/home.h"
#include "../client/terminal.h"
#include "../client/variables.h"
#include "../stream/call.h"
#include "../stream/standard.h"
#include "caller.h"
#include "node.h"
#include "questions.h"
#include "request.h"

#define STREAM "/v1/stream/"

/* Characters of a span's id; Node encodes others for the address. */
#define SPAN_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

/* Whether descriptors 0 to 2 are all this terminal in the foreground, or neither of the first two is one. What is between,
   such as a program whose errors go to a file, Node knows how to run. */
static bool read_terminal(struct stream *stream) {
  stream->has_terminal = terminal_is_ours();
  return stream->has_terminal || (isatty(STDIN_FILENO) != 1 && isatty(STDOUT_FILENO) != 1);
}

static bool is_for_node(struct stream *stream) {
  return !standard_is_open() || !read_terminal(stream);
}

/* Node sends one word as a program, unless it has a space, of which JavaScript knows more than ASCII. */
static bool is_plain(const struct options *options) {
  const char *only = options->command[1] == NULL ? options->command[0] : "";
  for (; *only != 0; only++) {
    if ((unsigned char)*only >= 0x80) return false;
  }
  return true;
}

static bool write_request(struct buffer *body, const struct caller *caller, const struct options *options,
                          const struct stream *stream) {
  const char *parent = variable("SUBSTRATE_PARENT_SPAN");
  if (!request_add(body, caller, options)) return false;
  if (parent != NULL) buffer_field(body, "parent_span", parent);
  buffer_field(body, "home", options->real_home ? "real" : "own");
  buffer_text(body, ",\"no_time_limit\":true,\"stdin\":true");
  if (stream->has_terminal) terminal_add(body);
  else if (standard_outputs_are_one()) buffer_text(body, OUTPUTS_TOGETHER);
  if (stream->asker != NULL) buffer_text(body, QUESTIONS);
  buffer_text(body, "}");
  return !body->failed && body->length <= MOST_REQUEST;
}

int run_run(const struct options *options) {
  static const struct asker ASKER = {questions_ask, questions_denied};
  static struct caller caller;
  static struct stream stream = {.takes_input = true};
  struct buffer body = {0};
  const char *world = getenv("SUBSTRATE_WORLD");
  if ((world != NULL && strcmp(world, "disabled") == 0) || is_for_node(&stream) || !is_plain(options)) return TO_NODE;
  if (!caller_read(&caller, options)) return TO_NODE;
  if (stream.has_terminal) stream.asker = &ASKER;
  if (stream.asker != NULL && !questions_name(stream.call)) return TO_NODE;
  if (!write_request(&body, &caller, options, &stream)) return TO_NODE;
  stream.has_node = true;
  int code = call_run(&stream, caller.socket, &body);
  return code == NOT_CALLED ? TO_NODE : call_end(&stream, code);
}

/* `~.` at the beginning of a line, as in ssh; perhaps with the line's end. */
static bool leaves_by_keys(const char *bytes, size_t length) {
  static char last[4] = "\n\n\n\n";
  for (size_t i = 0; i < length; i++) {
    memmove(last, last + 1, sizeof last - 1);
    last[sizeof last - 1] = bytes[i];
  }
  const char *keys = strchr("\r\n", last[3]) == NULL ? last + 1 : last;
  return strchr("\r\n", keys[0]) != NULL && keys[1] == '~' && keys[2] == '.';
}

int attach_run(const struct options *options) {
  static struct caller caller;
  static struct stream stream;
  static char path[sizeof STREAM + 64] = STREAM;
  const char *span = options->command[0];
  if (options->command[1] != NULL || span[strspn(span, SPAN_CHARACTERS)] != 0 || strlen(span) > 64) return TO_NODE;
  if (is_for_node(&stream) || !caller_read(&caller, options)) return TO_NODE;
  strcat(path, span);
  stream.path = path;
  /* The end of a script's input would be the program's, which goes on when nobody looks. */
  stream.takes_input = stream.has_terminal;
  if (stream.has_terminal) stream.leaves = leaves_by_keys;
  home_path(caller.socket, "sock/control.sock");
  int code = call_run(&stream, caller.socket, NULL);
  return code == NOT_CALLED ? TO_NODE : call_end(&stream, code);
}
