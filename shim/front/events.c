#define _GNU_SOURCE
#include "events.h"

#include <string.h>

/* Same rows as api/cli/commands/hook-agents.ts. */
static const struct {
  const char *name, *kind;
} EVENTS[] = {
    {"SessionStart", "session_start"}, {"SessionEnd", "session_end"}, {"UserPromptSubmit", "prompt"}, {"BeforeAgent", "prompt"},
    {"Stop", "stop"},                  {"AfterAgent", "stop"},        {"PostToolUse", "tool"},        {"AfterTool", "tool"},
};

/* Fields of an event, and of the request. */
static const struct {
  const char *kind, *from, *to;
} FIELDS[] = {
    {"session_start", "source", "reason"}, {"session_end", "reason", "reason"},       {"prompt", "prompt", "prompt"},
    {"tool", "tool_name", "tool"},         {"tool", "tool_use_id", "tool_use_id"},
};

const char *events_kind(struct json event) {
  struct json name = json_member(event, "hook_event_name");
  for (size_t i = 0; i < sizeof EVENTS / sizeof *EVENTS; i++) {
    if (json_is(name, EVENTS[i].name)) return EVENTS[i].kind;
  }
  return NULL;
}

/* A text is passed on as it stands: it is valid JSON. */
static void add_text(struct buffer *body, const char *name, struct json value) {
  if (value.text == NULL || *value.text != '"' || value.length <= 2) return;
  buffer_text(body, ",\"");
  buffer_text(body, name);
  buffer_text(body, "\":");
  buffer_add(body, value.text, value.length);
}

void events_add(struct buffer *body, const struct agent *agent, struct json event, const char *kind) {
  struct call call = agents_used(agent, event);
  buffer_field(body, "event", kind);
  if (call.session != NULL) buffer_field(body, "session_key", call.session);
  for (size_t i = 0; i < sizeof FIELDS / sizeof *FIELDS; i++) {
    if (strcmp(FIELDS[i].kind, kind) == 0) add_text(body, FIELDS[i].to, json_member(event, FIELDS[i].from));
  }
  if (call.tool != NULL && (call.tool->kind == FILES || call.tool->kind == PATCH) && strcmp(kind, "tool") == 0) {
    /* Only a question says how the tool takes a name. */
    struct tool tool = *call.tool;
    if (tool.without == FINDS) tool.without = NAMED;
    call.tool = &tool;
    agents_add_files(body, &call);
  }
}
