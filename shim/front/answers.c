#define _GNU_SOURCE
#include "answers.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../client/descriptors.h"
#include "../client/say.h"
#include "blocking.h"

/* Linux passes no longer word to a program (MAX_ARG_STRLEN, include/uapi/linux/binfmts.h). */
#define MOST_WORD 131071

/* The agent's own words around the command; it writes each quote as five characters. */
#define AROUND 1024
#define MORE_FOR_QUOTE 4

/* As broker/model/shell-word.ts: sh, bash, zsh and fish read it alike. In fish backslashes are escapes between single quotes too, and the
   rest of a command would run on the host. */
static void add_quoted(struct buffer *to, const char *word) {
  buffer_text(to, "'");
  for (const char *rest = word; *rest != 0;) {
    size_t plain = strcspn(rest, "'\\");
    buffer_add(to, rest, plain);
    rest += plain;
    if (*rest == 0) break;
    buffer_text(to, "'\\");
    buffer_add(to, rest++, 1);
    buffer_text(to, "'");
  }
  buffer_text(to, "'");
}

static void add_front(struct buffer *to) {
  char path[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length < 0) blocking_end("Cannot find its own path", NULL);
  path[length] = 0;
  add_quoted(to, path);
}

/* `--wait`: the broker asks too, and holds the command until a person answers it. An earlier answer that the check
   found lets it run at once, or no longer holds. */
static void add_command(struct buffer *to, const struct call *call, const struct command *command, bool asks, bool isolated) {
  char limit[40] = "";
  if (command->timeout_ms > 0 && !command->keep) snprintf(limit, sizeof limit, " --timeout %ldms", command->timeout_ms);
  add_front(to);
  buffer_text(to, " exec --agent ");
  buffer_text(to, call->agent->name);
  buffer_text(to, " --shell " AGENTS_SHELL);
  if (call->session != NULL) {
    buffer_text(to, " --session ");
    buffer_text(to, call->session);
    buffer_text(to, call->agent->keeps == NULL ? "" : " --session-state ");
    buffer_text(to, call->agent->keeps == NULL ? "" : call->agent->keeps);
  }
  buffer_text(to, limit);
  /* An isolated command's world ends with it; the agent itself lets the command go on. */
  if (command->keep && !isolated) buffer_text(to, " --keep");
  if (asks) buffer_text(to, " --wait");
  buffer_text(to, " -- ");
  add_quoted(to, command->text);
}

static bool is_too_long(const struct buffer *command) {
  size_t length = command->length + AROUND;
  for (size_t i = 0; i < command->length; i++) length += command->data[i] == '\'' ? MORE_FOR_QUOTE : 0;
  return length > MOST_WORD;
}

/* Adds the tool's input as it came, with another command. */
static void add_input(struct buffer *to, const struct call *call, const char *command) {
  struct json value = {0};
  const char *field = call->tool->fields[0];
  buffer_text(to, "{");
  for (struct json name = json_name(call->input, value, &value); name.text != NULL; name = json_name(call->input, name, &value)) {
    if (json_is(name, field)) continue;
    buffer_add(to, name.text, name.length);
    buffer_text(to, ":");
    buffer_add(to, value.text, value.length);
    buffer_text(to, ",");
  }
  buffer_json(to, field);
  buffer_text(to, ":");
  buffer_json(to, command);
  buffer_text(to, "}");
}

/* Field of a tool's input with another command. */
static const char *const INPUTS[] = {[CLAUDE_FORM] = ",\"updatedInput\":", [GEMINI_FORM] = ",\"hookSpecificOutput\":{\"tool_input\":",
                                     [CURSOR_FORM] = ",\"updated_input\":"};
static const char *const ENDS[] = {[CLAUDE_FORM] = "}}\n", [GEMINI_FORM] = "}\n", [CURSOR_FORM] = "}\n"};

static void begin(struct buffer *to, const struct agent *agent, const char *decision, const char *reason) {
  switch (agent->form) {
  case CLAUDE_FORM:
    buffer_text(to, "{\"hookSpecificOutput\":{");
    buffer_field(to, "hookEventName", agent->event);
    buffer_field(to, "permissionDecision", decision);
    if (reason != NULL) buffer_field(to, "permissionDecisionReason", reason);
    return;
  case GEMINI_FORM:
    buffer_text(to, "{");
    buffer_field(to, "decision", decision);
    if (reason != NULL) buffer_field(to, "reason", reason);
    return;
  case CURSOR_FORM:
    buffer_text(to, "{");
    buffer_field(to, "permission", decision);
    if (reason == NULL) return;
    buffer_field(to, "user_message", reason);
    buffer_field(to, "agent_message", reason);
  }
}

static void print(struct buffer *text) {
  if (text->failed || !write_all(STDOUT_FILENO, text->data, text->length)) blocking_end("Cannot write the answer", NULL);
}

static void deny(const struct agent *agent, const char *reason) {
  struct buffer text = {0};
  begin(&text, agent, "deny", reason);
  buffer_text(&text, ENDS[agent->form]);
  print(&text);
}

void answers_pass(const struct agent *agent) {
  struct buffer text = {0};
  /* For Cursor no answer is a failure, after which `failClosed` blocks the tool. */
  if (agent->form != CURSOR_FORM) return;
  buffer_text(&text, "{}\n");
  print(&text);
}

static bool is_escape(const char *text) {
  return strncmp(text, "'\\''", 4) == 0 || strncmp(text, "'\\\\'", 4) == 0;
}

/* Whether a text is one word as add_quoted() writes it. */
static bool is_quoted(const char *text) {
  if (*text++ != '\'') return false;
  for (text += strcspn(text, "'\\"); is_escape(text); text += strcspn(text, "'\\")) text += 4;
  return strcmp(text, "'") == 0;
}

bool answers_is_rewritten(const struct call *call, const char *command) {
  char nothing[] = "";
  const struct command empty = {nothing, 0, false};
  bool is_same = false;
  for (int asks = 0; asks <= 1; asks++) {
    struct buffer words = {0};
    add_command(&words, call, &empty, asks == 1, false);
    if (words.failed) blocking_end("Not enough memory for the command", NULL);
    size_t length = words.length - strlen("''");
    if (strncmp(command, words.data, length) == 0 && is_quoted(command + length)) is_same = true;
    buffer_free(&words);
  }
  return is_same;
}

static void deny_last(const struct agent *agent, const char *command) {
  struct buffer why = {0};
  buffer_text(&why, "This command runs only in a world of Substrate, and ");
  buffer_text(&why, agent->name);
  buffer_text(&why, " did not have it changed before. Run this one instead, as it stands:\n");
  buffer_text(&why, command);
  if (why.failed) blocking_end("Not enough memory for the command", NULL);
  deny(agent, why.data);
}

/* `claude -p` has nobody whom it could ask, and takes `ask` for a denial: there the command itself waits for an approval. */
static bool is_unattended(void) {
  const char *how = getenv("CLAUDE_CODE_ENTRYPOINT");
  return how != NULL && strcmp(how, "sdk-cli") == 0;
}

static void rewrite(const struct call *call, const struct command *command, const char *question, bool approved, bool isolated) {
  const struct agent *agent = call->agent;
  struct buffer words = {0}, text = {0};
  add_command(&words, call, command, question != NULL, isolated);
  if (words.failed) blocking_end("Not enough memory for the command", NULL);
  if (is_too_long(&words)) {
    deny(agent, "The command is too long: with its quotes a shell takes 128 KiB in one word. Write it to a file in the "
                "project and run that file");
    return;
  }
  if (call->is_last) {
    deny_last(agent, words.data);
    return;
  }
  bool asks = question != NULL && !approved && agent->asks && !is_unattended();
  begin(&text, agent, asks ? "ask" : "allow", asks ? question : NULL);
  buffer_text(&text, INPUTS[agent->form]);
  add_input(&text, call, words.data);
  if (agent->form == GEMINI_FORM) buffer_text(&text, "}");
  buffer_text(&text, ENDS[agent->form]);
  print(&text);
}

static void add_line(struct buffer *to, struct json line) {
  char *text = json_copy(line);
  if (text != NULL && to->length > 0) buffer_text(to, "\n");
  if (text != NULL) add_shown(to, text);
  free(text);
}

/* The broker's lines, or the message and hint of its refusal. Blocks for an answer that has neither. */
static char *reason_of(struct json document) {
  struct json error = json_member(document, "error"), lines = json_member(document, "lines");
  struct buffer text = {0};
  add_line(&text, json_member(error, "message"));
  add_line(&text, json_member(error, "hint"));
  for (struct json line = json_item(lines, (struct json){0}); line.text != NULL; line = json_item(lines, line)) add_line(&text, line);
  if (text.data == NULL || text.failed) blocking_end("The broker's answer is not one that this version knows", NULL);
  return text.data;
}

static bool is_any(struct json verdict, const char *const verdicts[]) {
  for (; *verdicts != NULL; verdicts++) {
    if (json_is(verdict, *verdicts)) return true;
  }
  return false;
}

/* Denies unless the verdict is one of `others`. */
static struct json judged(const struct agent *agent, const struct answer *answer, const char *const others[], char **reason) {
  struct json document = json_document(answer->body, strlen(answer->body));
  struct json verdict = json_member(json_member(document, "decision"), "verdict");
  *reason = reason_of(document);
  if (answer->status == 200 && is_any(verdict, others)) return verdict;
  if (answer->status == 200 && !json_is(verdict, "deny")) blocking_end("The broker's verdict is not one that this version knows", NULL);
  deny(agent, *reason);
  return (struct json){0};
}

/* The agent's tool would say only that there is no such file. */
static void deny_missing(const struct agent *agent, const char *path) {
  struct buffer why = {0};
  buffer_text(&why, "'");
  add_shown(&why, path);
  buffer_text(&why, "' is not on this machine, where this tool looks. Commands have a /tmp of their world's own: what a command has written "
                    "there, a command reads");
  if (why.failed) blocking_end("Not enough memory for the answer", NULL);
  deny(agent, why.data);
}

void answers_for_files(const struct call *call, const struct answer *answer) {
  static const char *const OPENS[] = {"allow", NULL};
  char *reason, *missing;
  if (judged(call->agent, answer, OPENS, &reason).text == NULL) return;
  if ((missing = agents_missing_file(call)) != NULL) deny_missing(call->agent, missing);
  else answers_pass(call->agent);
}

void answers_for_command(const struct call *call, const struct command *command, const struct answer *answer) {
  static const char *const RUNS[] = {"allow", "isolate", "ask", "would_deny", "would_ask", "would_isolate", NULL};
  char *reason;
  struct json verdict = judged(call->agent, answer, RUNS, &reason);
  struct json approved = json_member(json_document(answer->body, strlen(answer->body)), "approved");
  if (verdict.text != NULL)
    rewrite(call, command, json_is(verdict, "ask") ? reason : NULL, approved.text != NULL, json_is(verdict, "isolate"));
}
