/* Words and options of `substrate exec`, `run`, `attach` and `check` (api/cli/program.ts). */
#ifndef SUBSTRATE_FRONT_OPTIONS_H
#define SUBSTRATE_FRONT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

enum verb { EXEC, RUN, ATTACH, CHECK };

struct options {
  enum verb verb;
  const char *agent, *profile, *shell, *session, *session_state; /* NULL: not given */
  const char **env;                    /* values of --env */
  size_t env_count;
  long timeout_ms;     /* 0: no limit */
  bool real_home, keep, waits, requires_approval;
  bool is_program;     /* a word alone is a program too; else it is a shell command */
  bool has_terminal;   /* the command gets this process's terminal */
  char *const *command; /* up to NULL; at least one word. Of ATTACH: a span */
};

/* Reads the command line. False for every other verb, and for options that are unknown here or wrong: Node
   knows more options, and has the words for wrong ones. */
bool options_read(struct options *options, char *const words[]);

#endif
