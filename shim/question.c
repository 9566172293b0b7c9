#define _GNU_SOURCE
#include "question.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* They differ from call to call and decide nothing: with them no answer could be remembered. */
static const char *const LEFT_OUT[] = {"_=", "PWD=", "OLDPWD=", "SHLVL=", "SUBSTRATE_", "SHIM_BYPASS=", "PATH="};

static bool is_left_out(const char *variable) {
  for (size_t i = 0; i < sizeof LEFT_OUT / sizeof *LEFT_OUT; i++) {
    if (strncmp(variable, LEFT_OUT[i], strlen(LEFT_OUT[i])) == 0) return true;
  }
  return variable[0] == '=' || strchr(variable, '=') == NULL;
}

static void add_words(struct buffer *body, const char *name, char *const words[]) {
  buffer_text(body, ",\"argv\":[");
  buffer_json(body, name);
  for (size_t i = 1; words[0] != NULL && words[i] != NULL; i++) {
    buffer_text(body, ",");
    buffer_json(body, words[i]);
  }
  buffer_text(body, "]");
}

/* Of two variables of one name most programs see the first; a JSON object would have the last. */
static bool is_again(char *const *variable) {
  size_t name = strcspn(*variable, "=") + 1;
  for (char *const *before = environ; before < variable; before++) {
    if (strncmp(*before, *variable, name) == 0) return true;
  }
  return false;
}

static void add_variables(struct buffer *body, const struct buffer *path) {
  buffer_text(body, ",\"env\":{");
  buffer_field(body, "PATH", path->data);
  for (char **variable = environ; *variable != NULL; variable++) {
    size_t name = strcspn(*variable, "=");
    if (is_left_out(*variable) || is_again(variable)) continue;
    char *key = strndup(*variable, name);
    if (key == NULL) body->failed = true;
    else buffer_field(body, key, *variable + name + 1);
    free(key);
  }
  buffer_text(body, "}");
}

struct buffer question_check(const struct program *program, const char *agent, char *const words[]) {
  struct buffer body = {0};
  char cwd[PATH_MAX];
  buffer_text(&body, "{");
  buffer_field(&body, "agent_id", agent);
  if (getcwd(cwd, sizeof cwd) != NULL) buffer_field(&body, "cwd", cwd);
  const char *profile = getenv("SUBSTRATE_PROFILE");
  if (profile != NULL && *profile != 0) buffer_field(&body, "profile", profile);
  add_words(&body, program->name, words);
  add_variables(&body, &program->others);
  buffer_text(&body, "}");
  return body;
}

struct buffer question_start(const struct buffer *check, bool bypass) {
  struct buffer body = {0};
  char wait[64];
  buffer_add(&body, check->data, check->length - 1);
  const char *parent = getenv("SUBSTRATE_PARENT_SPAN");
  if (parent != NULL && *parent != 0) buffer_field(&body, "parent_span", parent);
  snprintf(wait, sizeof wait, ",\"approval_wait_ms\":%d,\"bypass\":%s}", APPROVAL_SECONDS * 1000, bypass ? "true" : "false");
  buffer_text(&body, wait);
  body.failed |= check->failed;
  return body;
}

struct buffer question_end(const char *agent, const char *span, int status) {
  struct buffer body = {0};
  char end[64] = ",\"exit\":null,\"signal\":null}";
  if (status >= 0 && WIFEXITED(status)) snprintf(end, sizeof end, ",\"exit\":%d,\"signal\":null}", WEXITSTATUS(status));
  if (status >= 0 && WIFSIGNALED(status)) snprintf(end, sizeof end, ",\"exit\":null,\"signal\":%d}", WTERMSIG(status));
  buffer_text(&body, "{");
  buffer_field(&body, "agent_id", agent);
  buffer_field(&body, "span_id", span);
  buffer_text(&body, end);
  return body;
}
