#define _GNU_SOURCE
#include "request.h"

#include <stdlib.h>
#include <string.h>

#include "../client/variables.h"

/* One word is a shell command; for `run` it is a program, unless it has a space (api/cli/commands/run.ts). */
static bool is_shell_command(const struct options *options) {
  const char *only = options->command[0];
  if (options->is_program) return false;
  return options->command[1] == NULL && (options->verb != RUN || only[strcspn(only, " \t\n\v\f\r")] != 0);
}

static void add_command(struct buffer *body, const struct options *options) {
  char *const *words = options->command;
  if (is_shell_command(options)) {
    buffer_field(body, "cmd", words[0]);
    if (options->shell != NULL) buffer_field(body, "shell", options->shell);
    return;
  }
  buffer_text(body, ",\"argv\":[");
  for (size_t i = 0; words[i] != NULL; i++) {
    if (i > 0) buffer_text(body, ",");
    buffer_json(body, words[i]);
  }
  buffer_text(body, "]");
}

/* Adds one value of --env: `NAME=VALUE`, or the NAME of a variable of the caller. */
static bool add_given(struct buffer *body, const char *given) {
  size_t name = strcspn(given, "=");
  if (name == 0 || name > VARIABLE_NAME) return false;
  if (given[name] == '=') variable_add(body, given);
  else if (getenv(given) != NULL) buffer_field(body, given, getenv(given));
  else return false;
  return true;
}

static bool is_given_again(const struct options *options, size_t at) {
  size_t name = strcspn(options->env[at], "=");
  for (size_t after = at + 1; after < options->env_count; after++) {
    const char *other = options->env[after];
    if (strcspn(other, "=") == name && strncmp(other, options->env[at], name) == 0) return true;
  }
  return false;
}

static bool add_set_variables(struct buffer *body, const struct options *options) {
  if (options->env_count == 0) return true;
  buffer_text(body, ",\"env\":{");
  for (size_t at = 0; at < options->env_count; at++) {
    /* The last of one name holds; but a wrong one before is wrong too. */
    struct buffer unused = {0};
    bool again = is_given_again(options, at), right = add_given(again ? &unused : body, options->env[at]);
    buffer_free(&unused);
    if (!right) return false;
  }
  buffer_text(body, "}");
  return true;
}

/* Node refuses others, with a sentence. */
static bool are_text(const struct options *options) {
  for (size_t i = 0; options->command[i] != NULL; i++) {
    if (!buffer_is_text(options->command[i])) return false;
  }
  for (size_t i = 0; i < options->env_count; i++) {
    const char *value = strchr(options->env[i], '=') == NULL ? getenv(options->env[i]) : options->env[i];
    if (value != NULL && !buffer_is_text(value)) return false;
  }
  return true;
}

bool request_add(struct buffer *body, const struct caller *caller, const struct options *options) {
  if (!are_text(options)) return false;
  const char *profile = options->profile == NULL ? variable("SUBSTRATE_PROFILE") : options->profile;
  buffer_text(body, "{");
  buffer_field(body, "agent_id", caller->agent);
  buffer_field(body, "cwd", caller->cwd);
  if (profile != NULL) buffer_field(body, "profile", profile);
  if (options->session != NULL) buffer_field(body, "session_key", options->session);
  if (options->session_state != NULL) buffer_field(body, "session_state", options->session_state);
  add_command(body, options);
  variables_add_umask(body);
  return variables_add(body, NULL) && add_set_variables(body, options) && !body->failed;
}
