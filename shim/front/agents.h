/* Coding agents: their events, and which of their tools run commands or open files. */
#ifndef SUBSTRATE_FRONT_AGENTS_H
#define SUBSTRATE_FRONT_AGENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "../client/buffer.h"
#include "../client/json.h"

/* The shell in which agents run commands. */
#define AGENTS_SHELL "bash"

enum kind { SHELL, FILES, PATCH, CODE };

#define MOST_FIELDS 2

struct tool {
  const char *name; /* NULL ends a list */
  enum kind kind;
  const char *access;              /* FILES: read, search or write */
  const char *fields[MOST_FIELDS]; /* of the input: the command, the patch, or paths; lists of paths may be patterns */
  bool here;                       /* FILES: without a path the tool works in the event's folder */
};

struct agent {
  const char *name, *event;
  const struct tool *tools;
  bool asks;              /* a hook may have the person asked */
  bool is_gemini;         /* the form of answers */
  const char *background; /* field of a command that goes on by itself */
  const char *folder;     /* field of a command's folder, or NULL */
};

struct call {
  const struct agent *agent;
  const struct tool *tool; /* NULL: a tool that runs no command and opens no file */
  struct json input;
  const char *session; /* of the agent, in the letters of a session_key; NULL: none */
};

struct command {
  char *text;
  long timeout_ms; /* 0: none given */
  bool keep;
};

/* The agent that the only word names. Blocks for anything else. */
const struct agent *agents_find(char *const words[]);
/* What the event is about. Blocks for an event of another kind or shape. */
struct call agents_call(const struct agent *agent, struct json event);
/* The tool of an event that is recorded alone; blocks for nothing. */
struct call agents_used(const struct agent *agent, struct json event);
/* The command, and its folder in place of the event's. Blocks for fields of a wrong type. */
struct command agents_command(const struct call *call, char *cwd, size_t size);
/* Adds the field `files` of POST /v1/check. Blocks for a tool's input without a path. */
void agents_add_files(struct buffer *body, const struct call *call);

#endif
