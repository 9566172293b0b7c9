#include "events.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../client/json.h"
#include "../client/say.h"
#include "../client/terminal.h"
#include "refusal.h"
#include "signals.h"

static void taken(struct stream *stream, struct json bytes) {
  long count;
  if (!json_integer(bytes, 0, LONG_MAX, &count)) return;
  stream->untaken -= (size_t)count < stream->untaken ? (size_t)count : stream->untaken;
}

/* What a person reads after the output, as the broker words it. */
static void say_lines(struct json lines) {
  for (struct json line = json_item(lines, (struct json){0}); line.text != NULL; line = json_item(lines, line)) {
    char *text = json_copy(line);
    if (text != NULL) say(text, NULL);
    free(text);
  }
}

/* A command that was started elsewhere may have pipes. */
static void begin(struct stream *stream, struct json event) {
  stream->started = true;
  stream->has_terminal = stream->has_terminal && json_is_true(json_member(event, "pty"));
  /* At once: output that came with this message must find a raw terminal. */
  if (stream->has_terminal) terminal_take();
}

/* A program that handles Ctrl-Z itself may tidy up first. */
#define SUSPEND_SECONDS 10

/* A program that stops again and again takes time from itself alone. */
static const struct timespec PAUSE = {0, 100000000};

static bool was_suspended(struct stream *stream) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  bool recent = stream->suspended != 0 && now.tv_sec - stream->suspended <= SUSPEND_SECONDS;
  stream->suspended = 0;
  return recent;
}

static void say_goes_on(void) {
  static const char WORDS[] = "\r\nsubstrate: the program stopped itself; it goes on, because nobody typed Ctrl-Z here\r\n";
  static bool is_said;
  if (!is_said && write(STDERR_FILENO, WORDS, sizeof WORDS - 1) < 0) return;
  is_said = true;
  nanosleep(&PAUSE, NULL);
}

/* The person has stopped the command by Ctrl-Z: this job stops with it, and `fg` continues both. A program that stops itself goes on: else
   the host's shell would read what the person types to the program. */
static void stop(struct stream *stream) {
  static const char GO_ON[] = "{\"type\":\"signal\",\"signal\":\"SIGCONT\"}";
  if (was_suspended(stream)) signals_stop();
  else say_goes_on();
  websocket_add(&stream->unsent, TEXT, GO_ON, sizeof GO_ON - 1);
  signals_change();
}

static void ask(struct stream *stream, struct json approval) {
  char *id = json_copy(approval);
  stream->asker->ask(stream->call, id == NULL ? "" : id);
  stream->covered = true;
  free(id);
}

static void note_world(struct stream *stream, struct json world) {
  char *id = json_copy(world);
  if (id != NULL && strlen(id) < sizeof stream->world) strcpy(stream->world, id);
  free(id);
}

/* A broker of an older version does not know every field of a newer front's request. Nothing has run, and Node replaces that broker
   or says that it is old. */
static bool is_too_old(const struct stream *stream, struct json error) {
  static const char UNKNOWN[] = "Unknown field '";
  char *message = json_copy(json_member(error, "message"));
  bool unknown = message != NULL && strncmp(message, UNKNOWN, sizeof UNKNOWN - 1) == 0;
  free(message);
  return stream->has_node && !stream->started && unknown;
}

/* The words of `exec` in Node (api/cli/questions/ask-here.ts) for what the person at this terminal denied. */
static int refused(const struct stream *stream, struct json error) {
  bool denied = stream->asker != NULL && stream->asker->denied();
  if (is_too_old(stream, error)) return NOT_CALLED;
  if (stream->waits && json_is(json_member(error, "code"), "approval_required")) {
    say("no answer in time; asking again", NULL);
    return ASK_AGAIN;
  }
  if (!denied || !json_is(json_member(error, "code"), "approval_denied")) return refusal_say(error);
  say("denied; nothing ran", NULL);
  return EXIT_DENIED;
}

int events_take(struct stream *stream, const char *text, size_t length) {
  struct json event = json_document(text, length), type = json_member(event, "type");
  long code;
  if (event.text == NULL) return refusal_not_json(text, length);
  if (json_is(type, "started")) begin(stream, event);
  if (json_is(type, "stdin_taken")) taken(stream, json_member(event, "bytes"));
  if (json_is(type, "stopped")) stop(stream);
  if (json_is(type, "question") && stream->asker != NULL) ask(stream, json_member(event, "approval_id"));
  /* Before anything is said: a raw terminal begins no line by itself. */
  if (json_is(type, "error") || json_is(type, "exit")) terminal_restore();
  if (json_is(type, "error")) return refused(stream, json_member(event, "error"));
  if (!json_is(type, "exit")) return GOES_ON;
  stream->has_ended = true;
  stream->interrupted = json_is(json_member(event, "signal"), "SIGINT");
  note_world(stream, json_member(event, "world_id"));
  say_lines(json_member(event, "lines"));
  return json_integer(json_member(event, "exit"), 0, 255, &code) ? (int)code : refusal_not_json(text, length);
}
