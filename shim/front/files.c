#define _GNU_SOURCE
#include "files.h"

#include <stdlib.h>
#include <string.h>

#include "blocking.h"

/* Lines of a patch that name a file (the apply_patch tool of Codex). */
static const char *const HEADS[] = {"*** Add File:", "*** Update File:", "*** Delete File:", "*** Move to:"};

#define BLANKS " \t\r\v\f"

static void add_file(struct buffer *body, const char *access, const char *path) {
  buffer_text(body, body->data[body->length - 1] == '[' ? "{" : ",{");
  buffer_field(body, "path", path);
  buffer_field(body, "access", access);
  buffer_text(body, "}");
}

/* A line of the context may look like a head: then one file more is judged. */
static void add_patched(struct buffer *body, const char *access, char *patch) {
  for (char *rest = patch; rest != NULL;) {
    char *line = strsep(&rest, "\n");
    line += strspn(line, BLANKS);
    for (size_t i = 0; i < sizeof HEADS / sizeof *HEADS; i++) {
      size_t length = strlen(HEADS[i]);
      if (strncmp(line, HEADS[i], length) != 0) continue;
      char *path = line + length + strspn(line + length, BLANKS), *end = path + strlen(path);
      while (end > path && strchr(BLANKS, end[-1]) != NULL) *--end = 0;
      add_file(body, access, path);
    }
  }
}

/* A pattern may match everything below its first folders. */
static void add_pattern(struct buffer *body, const char *access, char *pattern) {
  char *star = strpbrk(pattern, "*?[{");
  if (star != NULL) {
    *star = 0;
    char *slash = strrchr(pattern, '/');
    if (slash == NULL) pattern = ".";
    else slash[slash == pattern ? 1 : 0] = 0;
  }
  add_file(body, access, pattern);
}

static void add_paths(struct buffer *body, const struct tool *tool, const char *field, struct json value) {
  struct json item = json_item(value, (struct json){0});
  bool is_list = item.text != NULL;
  for (; value.text != NULL; item = json_item(value, item)) {
    if (is_list && item.text == NULL) return;
    char *path = json_copy(is_list ? item : value);
    if (path == NULL) blocking_end("'", field, "' must be text", NULL);
    if (tool->kind == PATCH) add_patched(body, tool->access, path);
    else if (is_list) add_pattern(body, tool->access, path);
    else add_file(body, tool->access, path);
    free(path);
    if (!is_list) return;
  }
}

void files_add(struct buffer *body, const struct call *call) {
  const struct tool *tool = call->tool;
  buffer_text(body, ",\"files\":[");
  for (size_t i = 0; i < MOST_FIELDS && tool->fields[i] != NULL; i++) {
    struct json value = json_member(call->input, tool->fields[i]);
    if (value.text != NULL && *value.text != 'n') add_paths(body, tool, tool->fields[i], value);
  }
  if (!body->failed && body->data[body->length - 1] == '[') {
    if (!tool->here) blocking_end("'", tool->fields[0], "' of ", tool->name, " names no file", NULL);
    add_file(body, tool->access, ".");
  }
  buffer_text(body, "]");
}
