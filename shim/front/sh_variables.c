#define _GNU_SOURCE
#include "sh_variables.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../client/buffer.h"
#include "../client/variables.h"

extern char **environ;

/* Set by make (GNU make, 5.7) and by npm (docs.npmjs.com, "scripts") for what they run. */
static const char *const SET_BY_TOOLS[] = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MAKE_TERMOUT", "MAKE_TERMERR",
                                           "MAKE_RESTARTS", "INIT_CWD", "NODE"};
#define NPM "npm_"
#define NPM_SETTING "npm_config_"

/* Parts of names of npm's settings that hold credentials, or files with them. */
static const char *const CREDENTIALS[] = {"_auth", "token", "pass", "otp", "key", "cert", "email", "username"};

/* Names that a person adds, between commas. */
#define ADDED "SUBSTRATE_SH_ENV"

/* The kernel passes no larger environment by default (a quarter of the stack's limit of 8 MiB, execve(2)). */
#define MOST_ENVIRONMENT (2UL << 20)

static size_t name_of(const char *variable) {
  return strcspn(variable, "=");
}

static bool is_named(const char *variable, const char *name, size_t length) {
  return name_of(variable) == length && strncmp(variable, name, length) == 0;
}

/* `https://user:password@host`. */
static bool has_login(const char *value) {
  const char *host = strstr(value, "://");
  return host != NULL && strchr(host, '@') != NULL;
}

static bool is_credential(const char *variable) {
  size_t length = name_of(variable);
  char name[VARIABLE_NAME + 1];
  if (strncmp(variable, NPM_SETTING, strlen(NPM_SETTING)) != 0) return false;
  if (length >= sizeof name || variable[strlen(NPM_SETTING)] == '_' || memchr(variable, ':', length) != NULL) return true;
  memcpy(name, variable, length);
  name[length] = 0;
  for (size_t i = 0; i < sizeof CREDENTIALS / sizeof *CREDENTIALS; i++) {
    if (strcasestr(name, CREDENTIALS[i]) != NULL) return true;
  }
  return has_login(variable + length);
}

static bool is_set_by_tools(const char *variable) {
  for (size_t i = 0; i < sizeof SET_BY_TOOLS / sizeof *SET_BY_TOOLS; i++) {
    if (is_named(variable, SET_BY_TOOLS[i], strlen(SET_BY_TOOLS[i]))) return true;
  }
  return strncmp(variable, NPM, strlen(NPM)) == 0 && !is_credential(variable);
}

static bool is_added(const char *variable) {
  const char *names = getenv(ADDED);
  while (names != NULL && *names != 0) {
    size_t length = strcspn(names, ",");
    if (length > 0 && is_named(variable, names, length)) return true;
    names += length + (names[length] == ',');
  }
  return false;
}

/* Reads a file of /proc; empty for one that is too long, or not readable. */
static struct buffer contents(const char *path) {
  struct buffer text = {0};
  char piece[16384];
  ssize_t got = -1;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  while (file >= 0 && (got = read(file, piece, sizeof piece)) > 0 && text.length <= MOST_ENVIRONMENT) buffer_add(&text, piece, (size_t)got);
  if (file >= 0) close(file);
  if (got != 0 || text.failed) buffer_free(&text);
  return text;
}

/* The environment that make was started with; empty where the parent is no make. */
static struct buffer environment_of_make(void) {
  char path[64];
  if (getenv("MAKELEVEL") == NULL) return (struct buffer){0};
  snprintf(path, sizeof path, "/proc/%d/comm", (int)getppid());
  struct buffer name = contents(path);
  bool is_make = name.data != NULL && (strcmp(name.data, "make\n") == 0 || strcmp(name.data, "gmake\n") == 0);
  buffer_free(&name);
  snprintf(path, sizeof path, "/proc/%d/environ", (int)getppid());
  return is_make ? contents(path) : (struct buffer){0};
}

/* Whether make has added or changed the variable for its commands: the Makefile exports it, or the command line sets it. */
static bool is_exported(const char *variable, const struct buffer *before) {
  if (before->data == NULL || is_named(variable, "PATH", 4) || strncmp(variable, "SUBSTRATE_", 10) == 0) return false;
  for (const char *at = before->data; at < before->data + before->length; at += strlen(at) + 1) {
    if (strcmp(at, variable) == 0) return false;
  }
  return true;
}

/* Removes the word of make's options that names the jobserver: its descriptors do not exist in a world, and a make there would
   say so and run one job at a time. What follows ` -- ` are variables. */
static const char *without_jobserver(const char *flags) {
  static const char *const NAMES[] = {" --jobserver-auth=", " --jobserver-fds="};
  char *copy = strdup(flags);
  for (size_t i = 0; copy != NULL && i < sizeof NAMES / sizeof *NAMES; i++) {
    char *at = strstr(copy, NAMES[i]), *end = strstr(copy, " -- ");
    if (at == NULL || (end != NULL && end < at)) continue;
    const char *rest = at + 1 + strcspn(at + 1, " ");
    memmove(at, rest, strlen(rest) + 1);
  }
  return copy;
}

static const char *value_for(const char *variable) {
  bool is_flags = is_named(variable, "MAKEFLAGS", 9) || is_named(variable, "MFLAGS", 6);
  return is_flags ? without_jobserver(variable) : variable;
}

const char **sh_variables(size_t *count) {
  size_t all = 0;
  *count = 0;
  while (environ[all] != NULL) all++;
  const char **values = calloc(all + 1, sizeof *values);
  struct buffer before = environment_of_make();
  for (char **variable = environ; values != NULL && *variable != NULL; variable++) {
    if ((*variable)[name_of(*variable)] == 0 || name_of(*variable) == 0 || variable_is_again(variable)) continue;
    if (!is_set_by_tools(*variable) && !is_added(*variable) && !is_exported(*variable, &before)) continue;
    const char *value = value_for(*variable);
    if (value == NULL) return NULL;
    values[(*count)++] = value;
  }
  buffer_free(&before);
  return values;
}
