#define _GNU_SOURCE
#include "variables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

extern char **environ;

/* Limits of api/cli/commands/caller-shell.ts, there in UTF-16 units. A string has no more units than bytes. */
#define VARIABLE_VALUE 131071
#define MOST_VARIABLES 4096

/* Variables of Substrate say nothing about the caller's shell. */
#define OWN_PREFIX "SUBSTRATE_"

const char *variable(const char *name) {
  const char *value = getenv(name);
  return value == NULL || *value == 0 ? NULL : value;
}

bool variable_is_again(char *const *variable) {
  size_t name = strcspn(*variable, "=") + 1;
  for (char *const *before = environ; before < variable; before++) {
    if (strncmp(*before, *variable, name) == 0) return true;
  }
  return false;
}

void variable_add(struct buffer *body, const char *variable) {
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

static bool is_sent(char *const *variable, const char *path) {
  size_t name = strcspn(*variable, "=");
  if (name == 0 || (*variable)[name] == 0 || strncmp(*variable, OWN_PREFIX, strlen(OWN_PREFIX)) == 0) return false;
  if (path != NULL && strncmp(*variable, "PATH=", 5) == 0) return false;
  return has_text_name(*variable) && !variable_is_again(variable);
}

bool variables_add(struct buffer *body, const char *path) {
  size_t count = path == NULL ? 0 : 1;
  buffer_text(body, ",\"caller_env\":{");
  if (path != NULL) buffer_field(body, "PATH", path);
  for (char *const *variable = environ; *variable != NULL; variable++) {
    if (!is_sent(variable, path)) continue;
    size_t name = strcspn(*variable, "=");
    count++;
    if (count > MOST_VARIABLES || name > VARIABLE_NAME || strlen(*variable + name + 1) > VARIABLE_VALUE) return false;
    variable_add(body, *variable);
  }
  buffer_text(body, "}");
  return true;
}

void variables_add_umask(struct buffer *body) {
  char text[8];
  mode_t mask = umask(0);
  umask(mask);
  if (mask == 022) return;
  snprintf(text, sizeof text, "%04o", (unsigned)(mask & 0777));
  buffer_field(body, "umask", text);
}
