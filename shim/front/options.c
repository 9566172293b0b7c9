#include "options.h"

#include <stdlib.h>
#include <string.h>

/* Longest time limit of a call (api/cli/words/durations.ts). */
#define LONGEST_MS 86400000L

static bool read_verb(struct options *options, const char *word) {
  static const char *const VERBS[] = {[EXEC] = "exec", [RUN] = "run", [ATTACH] = "attach", [CHECK] = "check"};
  for (size_t verb = 0; word != NULL && verb < sizeof VERBS / sizeof *VERBS; verb++) {
    options->verb = (enum verb)verb;
    if (strcmp(word, VERBS[verb]) == 0) return true;
  }
  return false;
}

/* Whether the word is the option, alone or with `=VALUE`; moves `at` to the value's word. NULL: no value. */
static bool is_option(char *const **at, const char *name, const char **value) {
  size_t length = strlen(name);
  if (strncmp(**at, name, length) != 0) return false;
  const char *rest = **at + length;
  if (*rest != 0 && *rest != '=') return false;
  if (*rest == 0) ++*at;
  *value = *rest == '=' ? rest + 1 : **at;
  return true;
}

static bool read_time(const char *text, long *ms) {
  static const struct {
    const char *name;
    long ms;
  } UNITS[] = {{"", 1}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
  size_t digits = strspn(text, "0123456789");
  if (digits == 0 || digits > 12) return false;
  long count = strtol(text, NULL, 10);
  for (size_t i = 0; i < sizeof UNITS / sizeof *UNITS; i++) {
    if (strcmp(text + digits, UNITS[i].name) != 0) continue;
    *ms = count <= LONGEST_MS ? count * UNITS[i].ms : 0;
    return *ms >= 1 && *ms <= LONGEST_MS;
  }
  return false;
}

static bool read_switch(struct options *options, const char *word) {
  if (strcmp(word, "--keep") == 0) return options->keep = true;
  if (strcmp(word, "--wait") == 0) return options->waits = true;
  return strcmp(word, "--require-approval") == 0 && (options->requires_approval = true);
}

/* Reads the option at `at`; false for an unknown option and for a missing, empty or wrong value. */
static bool read_option(struct options *options, char *const **at) {
  const char *value = NULL, *time = NULL;
  bool runs = options->verb == RUN;
  if (options->verb == ATTACH) return false;
  if (runs && strcmp(**at, "--real-home") == 0) return options->real_home = true;
  if (options->verb == EXEC && read_switch(options, **at)) return true;
  if (is_option(at, "--agent", &value)) options->agent = value;
  else if (is_option(at, "--profile", &value)) options->profile = value;
  else if (!runs && is_option(at, "--shell", &value)) options->shell = value;
  else if (is_option(at, "--env", &value)) options->env[options->env_count++] = value;
  else if (options->verb == EXEC && is_option(at, "--timeout", &value)) time = value;
  else if (options->verb == EXEC && is_option(at, "--session", &value)) options->session = value;
  else if (options->verb == EXEC && is_option(at, "--session-state", &value)) options->session_state = value;
  if (value == NULL || *value == 0) return false;
  return time == NULL || read_time(time, &options->timeout_ms);
}

static size_t count_of(char *const words[]) {
  size_t count = 0;
  while (words[count] != NULL) count++;
  return count;
}

/* As api/cli/commands/command-body.ts: no shell reads several words. */
static bool is_right_shell(const struct options *options) {
  const char *shell = options->shell;
  return shell == NULL || (options->command[1] == NULL && (strcmp(shell, "sh") == 0 || strcmp(shell, "bash") == 0));
}

bool options_read(struct options *options, char *const words[]) {
  *options = (struct options){0};
  if (words[0] == NULL || !read_verb(options, words[1])) return false;
  options->env = calloc(count_of(words), sizeof *options->env);
  if (options->env == NULL) return false;
  char *const *at = words + 2;
  for (; *at != NULL && **at == '-'; at++) {
    if (strcmp(*at, "--") == 0) {
      at++;
      break;
    }
    if (!read_option(options, &at)) return false;
  }
  options->command = at;
  return *at != NULL && is_right_shell(options);
}
