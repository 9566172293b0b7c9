#define _GNU_SOURCE
#include "hook.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../client/broker.h"
#include "../client/home.h"
#include "../client/variables.h"
#include "agents.h"
#include "answers.h"
#include "blocking.h"
#include "caller.h"
#include "events.h"
#include "node.h"
#include "request.h"

/* Bytes of the longest event; the broker's bound for a request too. */
#define MOST_EVENT (10UL << 20)

#define ANSWER_SECONDS 10

/* No call follows a denial, so the check leaves the span of it. */
#define RECORDED ",\"record\":true,\"format\":\"text\"}"

static struct json read_event(void) {
  static struct buffer event;
  char piece[65536];
  ssize_t got;
  while ((got = read(STDIN_FILENO, piece, sizeof piece)) > 0) {
    buffer_add(&event, piece, (size_t)got);
    if (event.length > MOST_EVENT) blocking_end("The event has more than 10 MiB", NULL);
  }
  if (got < 0 || event.failed) blocking_end("The event could not be read from standard input", NULL);
  struct json document = json_document(event.data, event.length);
  if (document.text == NULL) blocking_end("The event on standard input is not JSON, or deeper than 64 levels", NULL);
  return document;
}

/* The socket is the agent's own, where config.yaml names it; else the agent's name is a label. */
static void read_caller(struct caller *caller, const struct agent *agent, struct json event) {
  struct json folder = json_member(event, "cwd");
  /* Cursor leaves it out, or empty, where the tool works in the workspace. */
  if (agent->form == CURSOR_FORM && (folder.text == NULL || json_is(folder, "")))
    folder = json_item(json_member(event, "workspace_roots"), (struct json){0});
  char *cwd = json_copy(folder);
  caller->agent = agent->name;
  if (!home_own_socket(caller->socket, agent->name)) home_path(caller->socket, "sock/agent.sock");
  if (cwd == NULL || *cwd != '/' || strlen(cwd) >= sizeof caller->cwd)
    blocking_end("The event's 'cwd' must be an absolute path", NULL);
  strcpy(caller->cwd, cwd);
  free(cwd);
}

static struct answer ask(const struct caller *caller, const char *path, const struct buffer *body) {
  struct broker broker;
  if (body->failed) blocking_end("Not enough memory for the request", NULL);
  if (!broker_open(&broker, caller->socket))
    blocking_end("No broker answers on '", caller->socket, "'. Run 'substrate broker start'", NULL);
  struct answer answer = {0, NULL, NULL};
  if (broker_send(&broker, path, body)) answer = broker_answer(&broker, ANSWER_SECONDS);
  if (answer.status == 0)
    blocking_end("The broker on '", caller->socket, "' gave no answer; 'substrate broker status' says how it is", NULL);
  return answer;
}

/* Adds the fields by which the broker finds the policy, as request_add() does for a command. */
static void add_caller(struct buffer *body, const struct caller *caller) {
  const char *profile = variable("SUBSTRATE_PROFILE");
  buffer_text(body, "{");
  buffer_field(body, "agent_id", caller->agent);
  buffer_field(body, "cwd", caller->cwd);
  if (profile != NULL) buffer_field(body, "profile", profile);
}

static void judge_files(const struct call *call, struct caller *caller) {
  struct buffer body = {0};
  add_caller(&body, caller);
  agents_add_files(&body, call);
  if (call->session != NULL) buffer_field(&body, "session_key", call->session);
  buffer_text(&body, RECORDED);
  struct answer answer = ask(caller, "/v1/check", &body);
  answers_for_files(call, &answer);
}

static void judge_command(const struct call *call, struct caller *caller) {
  struct buffer body = {0};
  const struct command command = agents_command(call, caller->cwd, sizeof caller->cwd);
  char *words[] = {command.text, NULL};
  if (call->is_last && answers_is_rewritten(call, command.text)) {
    answers_pass(call->agent);
    return;
  }
  struct options options = {.verb = CHECK, .shell = AGENTS_SHELL, .session = call->session, .command = words};
  if (!request_add(&body, caller, &options)) blocking_end("The environment has too many or too long variables", NULL);
  /* An approval is bound to it. */
  if (command.keep) buffer_text(&body, ",\"background\":\"keep\"");
  buffer_text(&body, RECORDED);
  struct answer answer = ask(caller, "/v1/check", &body);
  answers_for_command(call, &command, &answer);
}

static void record(const struct agent *agent, struct caller *caller, struct json event, const char *kind) {
  struct buffer body = {0};
  blocking_never();
  read_caller(caller, agent, event);
  buffer_text(&body, "{");
  buffer_field(&body, "agent_id", caller->agent);
  buffer_field(&body, "cwd", caller->cwd);
  events_add(&body, agent, event, kind);
  buffer_text(&body, "}");
  struct answer answer = ask(caller, "/v1/events", &body);
  struct json document = json_document(answer.body, strlen(answer.body));
  if (answer.status == 200 && json_member(document, "span_id").text != NULL) return;
  char *why = json_copy(json_member(json_member(document, "error"), "message"));
  blocking_end(why == NULL ? "The broker's answer is not one that this version knows" : why, NULL);
}

int hook_run(char *const words[]) {
  static struct caller caller;
  if (words[0] != NULL && (strcmp(words[0], "--help") == 0 || strcmp(words[0], "-h") == 0)) return TO_NODE;
  blocking_begin();
  const struct agent *agent = agents_find(words);
  struct json event = read_event();
  const char *kind = events_kind(event);
  if (kind != NULL) {
    record(agent, &caller, event, kind);
    return 0;
  }
  agent = agents_sender(agent, event);
  struct call call = agents_call(agent, event);
  if (call.tool == NULL) {
    answers_pass(agent);
    return 0;
  }
  read_caller(&caller, agent, event);
  if (call.tool->kind == SHELL) judge_command(&call, &caller);
  else judge_files(&call, &caller);
  return 0;
}
