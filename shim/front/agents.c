#define _GNU_SOURCE
#include "agents.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../client/home.h"
#include "blocking.h"

/* The longest session_key. */
#define MOST_SESSION 128

/* Same rows as api/cli/commands/hook-agents.ts; test/integration/hook.test.ts compares the answers. */
static const struct tool CLAUDE_TOOLS[] = {
    /* Copilot runs the hooks in a project's .claude/settings.json: `path` of Read, Write and Edit is its own, and `paths`. */
    {"Bash", SHELL, NULL, {"command"}, NAMED},
    {"Monitor", SHELL, NULL, {"command"}, NAMED},
    {"Read", FILES, "read", {"file_path", "path"}, NAMED},
    {"Write", FILES, "write", {"file_path", "path"}, NAMED},
    {"Edit", FILES, "write", {"file_path", "path"}, NAMED},
    {"MultiEdit", FILES, "write", {"file_path"}, NAMED},
    {"NotebookRead", FILES, "read", {"notebook_path"}, NAMED},
    {"NotebookEdit", FILES, "write", {"notebook_path"}, NAMED},
    {"Grep", FILES, "search", {"paths", "path"}, SPLITS},
    {"Glob", FILES, "read", {"paths", "path"}, SPLITS},
    {"LS", FILES, "read", {"path"}, HERE},
    {"Artifact", FILES, "read", {"file_path"}, NAMED},
    {"Projects", FILES, "read", {"local_path"}, HERE},
    {"Workflow", FILES, "read", {"scriptPath"}, HERE},
    {"REPL", CODE, NULL, {"code"}, NAMED},
    {"PowerShell", CODE, NULL, {"command"}, NAMED},
    {"apply_patch", PATCH, "write", {"command"}, NAMED},
    {0},
};

static const struct tool GEMINI_TOOLS[] = {
    {"run_shell_command", SHELL, NULL, {"command"}, NAMED},
    {"read_file", FILES, "read", {"file_path", "absolute_path"}, NAMED},
    {"read_many_files", FILES, "search", {"include", "paths"}, FINDS},
    {"write_file", FILES, "write", {"file_path"}, NAMED},
    {"replace", FILES, "write", {"file_path"}, FINDS},
    {"list_directory", FILES, "read", {"dir_path", "path"}, HERE},
    {"glob", FILES, "read", {"dir_path", "path"}, HERE},
    {"grep_search", FILES, "search", {"dir_path", "path"}, HERE},
    {"search_file_content", FILES, "search", {"dir_path", "path"}, HERE},
    {0},
};

static const struct tool CURSOR_TOOLS[] = {
    {"Shell", SHELL, NULL, {"command"}, NAMED},
    {"Read", FILES, "read", {"file_path", "path"}, NAMED},
    {"Write", FILES, "write", {"file_path", "path"}, NAMED},
    {"Edit", FILES, "write", {"file_path", "path"}, NAMED},
    {"StrReplace", FILES, "write", {"file_path", "path"}, NAMED},
    {"Delete", FILES, "write", {"file_path", "path"}, NAMED},
    {"Grep", FILES, "search", {"file_path", "path"}, HERE},
    {"List", FILES, "read", {"file_path", "path"}, HERE},
    {"FetchMcpResource", FILES, "write", {"download_path"}, MAY_NAME},
    {0},
};

/* The names of a hook of `PreToolUse`; with `preToolUse` they are bash, view, create and others. */
static const struct tool COPILOT_TOOLS[] = {
    {"Bash", SHELL, NULL, {"command"}, NAMED},
    {"Read", FILES, "read", {"path"}, NAMED},
    {"Write", FILES, "write", {"path"}, NAMED},
    {"Edit", FILES, "write", {"path"}, NAMED},
    {"Grep", FILES, "search", {"paths", "path"}, SPLITS},
    {"Glob", FILES, "read", {"paths", "path"}, SPLITS},
    {0},
};

/* Models of OpenAI edit by a patch, which is the whole input of Copilot's Edit. */
static const struct tool TEXT_PATCH = {"Edit", PATCH, "write", {NULL}, NAMED};

#define CLAUDE .event = "PreToolUse", .tools = CLAUDE_TOOLS, .background = "run_in_background", .limit = "timeout"

static const struct agent AGENTS[] = {
    {.name = "claude-code", CLAUDE, .asks = true},
    /* It takes `ask` for an error, after which it runs the tool as it is. */
    {.name = "codex", CLAUDE, .keeps = "none"},
    /* Its plugin (api/cli/init/opencode-plugin.ts) sends Claude Code's names. */
    {.name = "opencode", CLAUDE, .keeps = "none"},
    {.name = "gemini", .event = "BeforeTool", .tools = GEMINI_TOOLS, .form = GEMINI_FORM, .background = "is_background",
     .folders = {"dir_path"}, .limit = "timeout", .keeps = "none"},
    /* It ignores `ask`. After its `timeout` a command goes on in the background. */
    {.name = "cursor", .event = "preToolUse", .tools = CURSOR_TOOLS, .form = CURSOR_FORM, .folders = {"cwd", "working_directory"},
     .last_event = "beforeShellExecution"},
    /* With `-p` and in autopilot it takes `ask` for a denial, and says nothing of either. */
    {.name = "copilot", .event = "PreToolUse", .tools = COPILOT_TOOLS, .explains_on_stdout = true, .background = "mode"},
};

static const struct agent *agent_named(const char *name) {
  for (size_t i = 0; i < sizeof AGENTS / sizeof *AGENTS; i++) {
    if (strcmp(name, AGENTS[i].name) == 0) return &AGENTS[i];
  }
  return NULL;
}

const struct agent *agents_find(char *const words[]) {
  const struct agent *agent = words[0] == NULL || words[1] != NULL ? NULL : agent_named(words[0]);
  if (agent != NULL && agent->explains_on_stdout) blocking_explain();
  if (agent != NULL) return agent;
  blocking_end("'substrate hook' takes one agent: claude-code, codex, gemini, opencode, cursor or copilot", NULL);
}

const struct agent *agents_sender(const struct agent *named, struct json event) {
  static struct agent cursor;
  char socket[PATH_MAX];
  if (json_member(event, "cursor_version").text == NULL) return named;
  cursor = *agent_named("cursor");
  if (!home_own_socket(socket, cursor.name)) cursor.name = named->name;
  return &cursor;
}

static bool is_given(struct json value) {
  return value.text != NULL && *value.text != 'n';
}

static const struct tool *find_tool(const struct agent *agent, struct json name, struct json input) {
  for (const struct tool *tool = agent->tools; tool->name != NULL; tool++) {
    if (!json_is(name, tool->name)) continue;
    struct json file = json_member(input, tool->fields[0]);
    bool is_object = input.text != NULL && *input.text == '{';
    return tool->without == MAY_NAME && is_object && (!is_given(file) || json_is(file, "")) ? NULL : tool;
  }
  return NULL;
}

/* Other characters than a session_key has become '_'. */
static const char *session_of(struct json event) {
  static const char LETTERS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:@-";
  static char key[MOST_SESSION + 1];
  struct json id = json_member(event, "session_id");
  char *text = json_copy(id.text == NULL ? json_member(event, "conversation_id") : id);
  if (text == NULL || *text == 0) return NULL;
  for (size_t i = 0; i < MOST_SESSION && text[i] != 0; i++) key[i] = strchr(LETTERS, text[i]) == NULL ? '_' : text[i];
  free(text);
  return key;
}

/* The command stands in the event itself. */
static struct call last_call(const struct agent *agent, struct json event) {
  static const struct tool SHELL_TOOL = {"Shell", SHELL, NULL, {"command"}, NAMED};
  return (struct call){agent, &SHELL_TOOL, event, session_of(event), true};
}

struct call agents_call(const struct agent *agent, struct json event) {
  struct json name = json_member(event, "tool_name"), input = json_member(event, "tool_input");
  struct json about = json_member(event, "hook_event_name");
  if (agent->last_event != NULL && json_is(about, agent->last_event)) return last_call(agent, event);
  if (!json_is(about, agent->event)) blocking_end("The event's 'hook_event_name' must be '", agent->event, "'", NULL);
  if (name.text == NULL || *name.text != '"') blocking_end("The event's 'tool_name' must be text", NULL);
  struct call call = {agent, find_tool(agent, name, input), input, session_of(event), false};
  if (call.tool != NULL && call.tool->kind == CODE)
    blocking_end(call.tool->name, " runs code that no policy can judge, outside every world. Use a shell command", NULL);
  bool is_text = input.text != NULL && *input.text == '"';
  if (is_text && agent->tools == COPILOT_TOOLS && json_is(name, TEXT_PATCH.name)) call.tool = &TEXT_PATCH;
  else if (call.tool != NULL && (input.text == NULL || *input.text != '{'))
    blocking_end("The event's 'tool_input' must be an object", NULL);
  return call;
}

struct call agents_used(const struct agent *agent, struct json event) {
  struct json name = json_member(event, "tool_name"), input = json_member(event, "tool_input");
  return (struct call){.agent = agent, .tool = find_tool(agent, name, input), .input = input, .session = session_of(event)};
}

static bool read_flag(struct json input, const char *name) {
  struct json flag = name == NULL ? (struct json){0} : json_member(input, name);
  if (!is_given(flag) || json_is(flag, "sync")) return false;
  if (*flag.text == 't' || json_is(flag, "async")) return true;
  if (*flag.text != 'f') blocking_end("'", name, "' must be true or false, or 'async' or 'sync'", NULL);
  return false;
}

static void enter(const struct call *call, char *cwd, size_t size) {
  const char *const *names = call->agent->folders, *name = names[0];
  struct json folder = name == NULL ? (struct json){0} : json_member(call->input, name);
  if (names[1] != NULL && (!is_given(folder) || json_is(folder, ""))) folder = json_member(call->input, name = names[1]);
  if (!is_given(folder) || json_is(folder, "")) return;
  char *path = json_copy(folder);
  if (path == NULL) blocking_end("'", name, "' must be a path", NULL);
  size_t begin = *path == '/' ? 0 : strlen(cwd);
  int length = snprintf(cwd + begin, size - begin, "%s%s", begin == 0 ? "" : "/", path);
  if (length < 0 || (size_t)length >= size - begin) blocking_end("'", name, "' is too long", NULL);
  free(path);
}

struct command agents_command(const struct call *call, char *cwd, size_t size) {
  const struct agent *agent = call->agent;
  const char *field = call->tool->fields[0];
  struct json limit = agent->limit == NULL ? (struct json){0} : json_member(call->input, agent->limit);
  struct command command = {json_copy(json_member(call->input, field)), 0, read_flag(call->input, agent->background)};
  if (command.text == NULL || *command.text == 0) blocking_end("'", field, "' must be a command", NULL);
  /* U+0000, as json_copy() decodes it. */
  if (strstr(command.text, "\xc0\x80") != NULL) blocking_end("'", field, "' holds a NUL, which no shell can run", NULL);
  if (is_given(limit) && !json_integer(limit, 1, 86400000, &command.timeout_ms))
    blocking_end("'timeout' must be a whole number of milliseconds, at most a day", NULL);
  enter(call, cwd, size);
  return command;
}

/* Lines of a patch that name a file (the apply_patch tool of Codex). */
static const char *const HEADS[] = {"*** Add File:", "*** Update File:", "*** Delete File:", "*** Move to:"};

/* Most files of one question, and bytes of a path: as `POST /v1/check` takes them. */
#define MOST_FILES 100
#define MOST_PATH 4095

static void add_file(struct buffer *body, const struct tool *tool, const char *path, bool finds) {
  static int files;
  /* U+0000, as json_copy() decodes it. */
  if (strstr(path, "\xc0\x80") != NULL) blocking_end(tool->name, " names a path with a NUL, which no file's name has", NULL);
  if (strlen(path) > MOST_PATH) blocking_end(tool->name, " names a path of more than 4095 bytes", NULL);
  if (++files > MOST_FILES) blocking_end(tool->name, " names more than 100 files: name fewer at once", NULL);
  buffer_text(body, body->data[body->length - 1] == '[' ? "{" : ",{");
  buffer_field(body, "path", path);
  buffer_field(body, "access", tool->access);
  buffer_text(body, finds ? ",\"finds\":true}" : "}");
}

/* Whether only blanks stand before a head in its line, of any script, or any sign that some program ends a line at. */
static bool begins_line(const char *patch, const char *head) {
  bool ended = false;
  while (head > patch && (head[-1] < '!' || head[-1] > '~')) {
    head--;
    ended = ended || *head != ' ';
  }
  return ended || head == patch;
}

#define BLANKS " \t\r\v\f"

/* A program that splits the line at its colons takes the path only to the next one. */
static void add_patched_file(struct buffer *body, const struct tool *tool, char *path) {
  path += strspn(path, BLANKS);
  char *end = path + strlen(path), *colon = strchr(path, ':');
  while (end > path && strchr(BLANKS, end[-1]) != NULL) end--;
  char after = *end;
  *end = 0;
  add_file(body, tool, path, false);
  *end = after;
  if (colon == NULL) return;
  *colon = 0;
  add_file(body, tool, path, false);
  *colon = ':';
}

/* A line of the context may look like a head: then one file more is judged. */
static void add_patched(struct buffer *body, const struct tool *tool, char *patch) {
  for (char *at = strstr(patch, "*** "); at != NULL; at = strstr(at + 1, "*** ")) {
    for (size_t i = 0; i < sizeof HEADS / sizeof *HEADS; i++) {
      size_t length = strlen(HEADS[i]);
      if (strncmp(at, HEADS[i], length) != 0 || !begins_line(patch, at)) continue;
      char *path = at + length, *end = path + strcspn(path, "\n"), after = *end;
      *end = 0;
      add_patched_file(body, tool, path);
      *end = after;
    }
  }
}

/* Skips `(.)`, `(..)` and `(...)` before a name, which lead to no other folder: Next.js has such names. */
static const char *past_dots(const char *at) {
  const char *end = at;
  while (*end == '(') {
    size_t dots = strspn(end + 1, ".");
    if (dots < 1 || dots > 3 || end[1 + dots] != ')') return at;
    end += dots + 2;
  }
  return isalnum((unsigned char)*end) || *end == '_' ? end : at;
}

/* Whether a segment, or a word of a group that may become a segment, leads to the parent folder. */
static bool climbs(const char *text) {
  for (const char *at = text; *at != 0; at++) {
    if (at == text || at[-1] == '/') at = past_dots(at);
    if (*at != '.') continue;
    bool is_double = at[1] == '.';
    char before = at == text ? '/' : at[-1], after = is_double ? at[2] : at[1];
    if (after == 0) after = '/';
    if (strchr(is_double ? "/{},()|" : "{},()|", before) != NULL && strchr(is_double ? "/{},()|" : "/},)|", after) != NULL)
      return true;
  }
  return false;
}

/* Whether a pattern leads to a parent folder: with a backslash for a slash, or for the next letter itself, as a class of one letter. */
static bool pattern_climbs(const char *pattern) {
  char *plain = strdup(pattern);
  if (plain == NULL) blocking_end("Not enough memory for the request", NULL);
  for (char *at = plain; (at = strchr(at, '\\')) != NULL;) *at = '/';
  bool found = climbs(plain);
  char *to = plain;
  for (const char *from = pattern; *from != 0; from++) {
    if (strchr("\\[]", *from) == NULL) *to++ = *from;
  }
  *to = 0;
  found = found || climbs(plain);
  free(plain);
  return found;
}

/* A pattern may match everything below its first folders. Some take a backslash for a slash, some for the next letter itself, and some
   take the whole for the name of a file. */
static void add_pattern(struct buffer *body, const struct tool *tool, char *pattern) {
  char *star = strpbrk(pattern, "*?[{(\\");
  if (star == NULL) {
    add_file(body, tool, pattern, tool->without == FINDS);
    return;
  }
  char *slash = memrchr(pattern, '/', (size_t)(star - pattern));
  if (pattern_climbs(slash == NULL ? pattern : slash + 1))
    blocking_end(tool->name, " names a pattern with '..' behind a wildcard: name the folder itself", NULL);
  add_file(body, tool, pattern, false);
  if (slash != NULL) slash[slash == pattern ? 1 : 0] = 0;
  add_file(body, tool, slash == NULL ? "." : pattern, tool->without == FINDS);
}

static void add_path(struct buffer *body, const struct tool *tool, char *path, bool is_pattern) {
  if (is_pattern) add_pattern(body, tool, path);
  else add_file(body, tool, path, tool->without == FINDS);
}

/* Copilot takes a text with blanks for one path where that is there, and else for several. */
static void add_whole(struct buffer *body, const struct tool *tool, char *text, bool is_pattern) {
  bool is_several = tool->without == SPLITS && strchr(text, ' ') != NULL;
  char *parts = is_several ? strdup(text) : NULL, *rest = NULL;
  if (is_several && parts == NULL) blocking_end("Not enough memory for the request", NULL);
  add_path(body, tool, text, is_pattern);
  for (char *part = is_several ? strtok_r(parts, " ", &rest) : NULL; part != NULL; part = strtok_r(NULL, " ", &rest))
    add_path(body, tool, part, is_pattern);
  free(parts);
}

static void add_paths(struct buffer *body, const struct tool *tool, const char *field, struct json value) {
  struct json item = json_item(value, (struct json){0});
  bool is_list = item.text != NULL;
  for (; value.text != NULL; item = json_item(value, item)) {
    if (is_list && item.text == NULL) return;
    char *path = json_copy(is_list ? item : value);
    if (path == NULL) blocking_end("'", field, "' must be text", NULL);
    if (tool->kind == PATCH) add_patched(body, tool, path);
    else add_whole(body, tool, path, is_list);
    free(path);
    if (!is_list) return;
  }
}

/* Whether the first name below a folder of temporary files is missing. In a folder that is there a missing file needs no words. */
static bool is_missing_temporary(const char *path) {
  static const char *const FOLDERS[] = {"/tmp/", "/var/tmp/"};
  char first[PATH_MAX];
  for (size_t i = 0; i < sizeof FOLDERS / sizeof *FOLDERS; i++) {
    size_t length = strlen(FOLDERS[i]), name = strcspn(path + (strlen(path) < length ? 0 : length), "/");
    if (strncmp(path, FOLDERS[i], length) != 0 || name == 0 || length + name >= sizeof first) continue;
    memcpy(first, path, length + name);
    first[length + name] = 0;
    return access(first, F_OK) < 0;
  }
  return false;
}

char *agents_missing_file(const struct call *call) {
  const struct tool *tool = call->tool;
  for (size_t i = 0; tool->kind == FILES && strcmp(tool->access, "write") != 0 && i < MOST_FIELDS && tool->fields[i] != NULL; i++) {
    char *path = json_copy(json_member(call->input, tool->fields[i]));
    if (path != NULL && is_missing_temporary(path)) return path;
    free(path);
  }
  return NULL;
}

void agents_add_files(struct buffer *body, const struct call *call) {
  const struct tool *tool = call->tool;
  buffer_text(body, ",\"files\":[");
  for (size_t i = 0; i < MOST_FIELDS && tool->fields[i] != NULL; i++) {
    struct json value = json_member(call->input, tool->fields[i]);
    if (value.text != NULL && *value.text != 'n') add_paths(body, tool, tool->fields[i], value);
  }
  if (tool->fields[0] == NULL) add_paths(body, tool, "tool_input", call->input);
  if (!body->failed && body->data[body->length - 1] == '[') {
    if (tool->without != HERE && tool->without != SPLITS) blocking_end("'", tool->fields[0] == NULL ? "tool_input" : tool->fields[0], "' of ", tool->name, " names no file", NULL);
    add_file(body, tool, ".", tool->without == FINDS);
  }
  buffer_text(body, "]");
}
