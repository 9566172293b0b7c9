#include "isolated.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/say.h"
#include "client/terminal.h"
#include "question.h"
#include "stream/call.h"
#include "stream/refusal.h"
#include "stream/standard.h"

/* As `substrate exec` (api/cli/commands/exec.ts). */
static int refuse_without_world(const char *name) {
  say("Cannot run '", name,
      "' with SUBSTRATE_WORLD=disabled: the policy isolates this command, and this version runs every such command in a "
      "world. Unset the variable",
      NULL);
  return EXIT_FAILED;
}

/* Somebody is there to read and to wonder why nothing can be typed. */
static void say_no_input(const char *name) {
  if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1) return;
  say("'", name, "' gets no input from this terminal: it runs isolated, and its output goes elsewhere or it runs in the background", NULL);
}

static bool are_text(char *const words[]) {
  for (; *words != NULL; words++) {
    if (!buffer_is_text(*words)) return false;
  }
  return true;
}

/* On the host every word would reach the program. */
static int refuse_words(const char *name) {
  say(name,
      ": the policy isolates this command, and its words or variables cannot be sent to the broker: they are too many, or not "
      "UTF-8. Pass fewer words at a time (xargs -n), or let the program read them from a file",
      NULL);
  return EXIT_DENIED;
}

int isolated_run(const struct program *program, const char *agent, const char *socket, char *const words[]) {
  const char *world = getenv("SUBSTRATE_WORLD");
  if (world != NULL && strcmp(world, "disabled") == 0) return refuse_without_world(program->name);
  if (!are_text(words + 1)) return refuse_words(program->name);
  /* No static variable: every allowed program's shim would have its pages between others. */
  struct stream *stream = calloc(1, sizeof *stream);
  if (stream == NULL || !standard_open()) return NOT_CALLED;
  stream->has_terminal = terminal_is_ours();
  stream->takes_input = stream->has_terminal || standard_has_input();
  if (!stream->has_terminal) say_no_input(program->name);
  struct buffer body = question_stream(program, agent, words, stream->has_terminal, stream->takes_input);
  return body.failed ? refuse_words(program->name) : call_end(stream, call_run(stream, socket, &body));
}
