#define _GNU_SOURCE
#include "question.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/terminal.h"
#include "client/variables.h"
#include "stream/standard.h"

extern char **environ;

/* Variables not sent: different in each call without changing the verdict, so the broker could cache no
   answer. PATH is sent without the shims' folders instead. */
static const char *const LEFT_OUT[] = {"_=", "PWD=", "OLDPWD=", "SHLVL=", "SUBSTRATE_", "SHIM_BYPASS=", "PATH="};

static bool is_left_out(const char *variable) {
  for (size_t i = 0; i < sizeof LEFT_OUT / sizeof *LEFT_OUT; i++) {
    if (strncmp(variable, LEFT_OUT[i], strlen(LEFT_OUT[i])) == 0) return true;
  }
  return variable[0] == '=' || strchr(variable, '=') == NULL;
}

/* Limits of the broker (api/http/body.ts, schemas/report-request): 10 MiB, and a number of items. One word or
   variable has at most 128 KiB (MAX_ARG_STRLEN, include/uapi/linux/binfmts.h), in JSON at most six times as
   much. */
#define MOST_WORDS 65536
#define WORDS_LENGTH (4UL << 20)
#define MOST_VARIABLES 4000
#define VARIABLES_LENGTH (8UL << 20)

/* Returns the number of words left out. */
static size_t add_words(struct buffer *body, const char *name, char *const words[]) {
  size_t count = 0, all = 0;
  while (words[all] != NULL) all++;
  buffer_text(body, ",\"argv\":[");
  buffer_json(body, name);
  for (count = 1; count < all && count < MOST_WORDS && body->length < WORDS_LENGTH; count++) {
    buffer_text(body, ",");
    buffer_json(body, words[count]);
  }
  buffer_text(body, "]");
  return all > count ? all - count : 0;
}

/* Returns the number of variables left out; LEFT_OUT does not count. */
static size_t add_variables(struct buffer *body, const struct buffer *path) {
  size_t count = 0, left_out = 0;
  buffer_text(body, ",\"env\":{");
  buffer_field(body, "PATH", path->data);
  for (char **variable = environ; *variable != NULL; variable++) {
    size_t name = strcspn(*variable, "=");
    if (is_left_out(*variable)) continue;
    if (count >= MOST_VARIABLES || name > VARIABLE_NAME || body->length > VARIABLES_LENGTH) {
      left_out++;
      continue;
    }
    if (variable_is_again(variable)) continue;
    char *key = strndup(*variable, name);
    if (key == NULL) body->failed = true;
    else buffer_field(body, key, *variable + name + 1);
    free(key);
    count++;
  }
  buffer_text(body, "}");
  return left_out;
}

/* Adds the working directory. For a deleted folder getcwd(3) fails, but /proc still has the former path. */
static void add_folder(struct buffer *body) {
  char cwd[PATH_MAX] = "";
  if (getcwd(cwd, sizeof cwd) == NULL) {
    ssize_t length = readlink("/proc/self/cwd", cwd, sizeof cwd - 1);
    cwd[length < 0 ? 0 : length] = 0;
  }
  if (cwd[0] == '/') buffer_field(body, "cwd", cwd);
}

static void add_named(struct buffer *body, const char *field, const char *name) {
  const char *value = variable(name);
  if (value != NULL) buffer_field(body, field, value);
}

static void add_caller(struct buffer *body, const char *agent) {
  buffer_text(body, "{");
  buffer_field(body, "agent_id", agent);
  add_folder(body);
  add_named(body, "profile", "SUBSTRATE_PROFILE");
  add_named(body, "parent_span", "SUBSTRATE_PARENT_SPAN");
}

struct buffer question_start(const struct program *program, const char *agent, char *const words[], bool bypass) {
  struct buffer body = {0};
  char rest[96];
  add_caller(&body, agent);
  size_t left_out = add_words(&body, program->name, words) + add_variables(&body, &program->others);
  /* Counts as an incomplete PATH: the broker does not search the program's folder, so cannot resolve the
     name. */
  if (program->is_far) left_out++;
  if (left_out > 0) {
    snprintf(rest, sizeof rest, ",\"left_out\":%zu", left_out);
    buffer_text(&body, rest);
  }
  snprintf(rest, sizeof rest, ",\"approval_wait_ms\":%d,\"bypass\":%s}", APPROVAL_SECONDS * 1000, bypass ? "true" : "false");
  buffer_text(&body, rest);
  return body;
}

struct buffer question_stream(const struct program *program, const char *agent, char *const words[], bool terminal, bool input) {
  struct buffer body = {0};
  char rest[96];
  add_caller(&body, agent);
  if (add_words(&body, program->name, words) > 0 || !variables_add(&body, program->others.data)) body.failed = true;
  variables_add_umask(&body);
  if (terminal) terminal_add(&body);
  else if (standard_outputs_are_one()) buffer_text(&body, OUTPUTS_TOGETHER);
  snprintf(rest, sizeof rest, ",\"approval_wait_ms\":%d,\"no_time_limit\":true,\"stdin\":%s}", APPROVAL_SECONDS * 1000,
           input ? "true" : "false");
  buffer_text(&body, rest);
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
