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

/* FILES: what the tool does where the input names no file (HERE, SPLITS: works in the event's folder), or names none that is there
   (FINDS: looks for another one of that name, for a relative path; SPLITS: takes the text for several paths with blanks between them).
   MAY_NAME: it opens a file only where the first field names one. */
enum without { NAMED, HERE, FINDS, SPLITS, MAY_NAME };

struct tool {
  const char *name; /* NULL ends a list */
  enum kind kind;
  const char *access;              /* FILES: read, search or write */
  const char *fields[MOST_FIELDS]; /* of the input: the command, the patch, or paths; lists of paths may be patterns. None: the input is the patch */
  enum without without;
};

/* Forms of answers. */
enum form { CLAUDE_FORM, GEMINI_FORM, CURSOR_FORM };

/* Names of fields are NULL where the agent sends no such field. */
struct agent {
  const char *name, *event;
  const struct tool *tools;
  enum form form;
  bool asks;               /* a hook may have the person asked */
  bool explains_on_stdout; /* the model is shown why only by an answer, also with exit code 2 */
  const char *keeps;       /* what a command leaves to the next one, in the agent's own shell; NULL: folder and variables */
  const char *background;  /* of a command that goes on by itself: true, or "async" */
  const char *folders[2];  /* of a command's folder: the first one that is not empty */
  const char *limit;       /* of the milliseconds after which the agent ends a command */
  const char *last_event;  /* a second event with each command as it is about to run, whose hook cannot change it */
};

struct call {
  const struct agent *agent;
  const struct tool *tool; /* NULL: a tool that runs no command and opens no file */
  struct json input;
  const char *session; /* of the agent, in the letters of a session_key; NULL: none */
  bool is_last;        /* the agent's last_event */
};

struct command {
  char *text;
  long timeout_ms; /* 0: none given */
  bool keep;
};

/* The agent that the only word names. Blocks for anything else. */
const struct agent *agents_find(char *const words[]);
/* The agent that sent the event: Cursor runs the hooks in Claude Code's settings too. Where config.yaml does not name Cursor,
   the policy of the named agent holds. */
const struct agent *agents_sender(const struct agent *named, struct json event);
/* What the event is about. Blocks for an event of another kind or shape. */
struct call agents_call(const struct agent *agent, struct json event);
/* The tool of an event that is recorded alone; blocks for nothing. */
struct call agents_used(const struct agent *agent, struct json event);
/* The command, and its folder in place of the event's. Blocks for fields of a wrong type. */
struct command agents_command(const struct call *call, char *cwd, size_t size);
/* The file that a tool is to read and that cannot be there: a folder of /tmp or /var/tmp, or a file in them, that this machine does not
   have. NULL: none. */
char *agents_missing_file(const struct call *call);
/* Adds the field `files` of POST /v1/check. Blocks for a tool's input without a path. */
void agents_add_files(struct buffer *body, const struct call *call);

#endif
