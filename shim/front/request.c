#define _GNU_SOURCE
#include "request.h"

#include <stdlib.h>
#include <string.h>

extern char **environ;

/* Limits of api/cli/commands/caller-shell.ts, there in UTF-16 units. A string has no more units than bytes. */
#define VARIABLE_NAME 1024
#define VARIABLE_VALUE 131071
#define MOST_VARIABLES 4096

/* Variables of Substrate say nothing about the caller's shell. */
#define OWN_PREFIX "SUBSTRATE_"

static void add_command(struct buffer *body, const struct options *options) {
  char *const *words = options->command;
  if (words[1] == NULL) {
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

/* Adds `NAME=VALUE` as a field. */
static void add_variable(struct buffer *body, const char *variable) {
  size_t length = strcspn(variable, "=");
  char name[VARIABLE_NAME + 1];
  memcpy(name, variable, length);
  name[length] = 0;
  buffer_field(body, name, variable + length + 1);
}

/* Whether a variable's name is UTF-8. Node finds no value for other names, so sends no such variable. */
static bool has_text_name(const char *variable) {
  const unsigned char *at = (const unsigned char *)variable;
  while (*at != '=') {
    size_t length = buffer_character(at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

static bool has_same_name(const char *variable, const char *other) {
  return strncmp(variable, other, strcspn(variable, "=") + 1) == 0;
}

/* Of two variables with one name getenv(3) finds the first. */
static bool is_again(char *const *variable) {
  for (char *const *before = environ; before < variable; before++) {
    if (has_same_name(*variable, *before)) return true;
  }
  return false;
}

static bool add_callers_variables(struct buffer *body) {
  size_t count = 0;
  buffer_text(body, ",\"caller_env\":{");
  for (char *const *variable = environ; *variable != NULL; variable++) {
    size_t name = strcspn(*variable, "=");
    if (name == 0 || (*variable)[name] == 0 || strncmp(*variable, OWN_PREFIX, strlen(OWN_PREFIX)) == 0) continue;
    if (!has_text_name(*variable) || is_again(variable)) continue;
    count++;
    if (count > MOST_VARIABLES || name > VARIABLE_NAME || strlen(*variable + name + 1) > VARIABLE_VALUE) return false;
    add_variable(body, *variable);
  }
  buffer_text(body, "}");
  return true;
}

/* Adds one value of --env: `NAME=VALUE`, or the NAME of a variable of the caller. */
static bool add_given(struct buffer *body, const char *given) {
  size_t name = strcspn(given, "=");
  if (name == 0 || name > VARIABLE_NAME) return false;
  if (given[name] == '=') add_variable(body, given);
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

bool request_add(struct buffer *body, const struct caller *caller, const struct options *options) {
  const char *profile = options->profile == NULL ? variable("SUBSTRATE_PROFILE") : options->profile;
  buffer_text(body, "{");
  buffer_field(body, "agent_id", caller->agent);
  buffer_field(body, "cwd", caller->cwd);
  if (profile != NULL) buffer_field(body, "profile", profile);
  add_command(body, options);
  return add_callers_variables(body) && add_set_variables(body, options) && !body->failed;
}
