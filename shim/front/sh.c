#define _GNU_SOURCE
#include "sh.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../client/buffer.h"
#include "../client/say.h"
#include "../client/terminal.h"
#include "../client/variables.h"
#include "../stream/refusal.h"
#include "exec.h"
#include "inside.h"
#include "node.h"
#include "sh_variables.h"

#define SH "/bin/sh"

/* Options of sh(1) in POSIX, and `l`, `p`, `k` and `t` of bash: letters, any of which may stand in one word with others. */
#define LETTERS "abCefhiklmnpstuvxc"

/* What the words ask for, as api/cli/commands/sh-words.ts reads them. */
struct asked {
  bool has_command; /* -c */
  bool has_options; /* besides -c */
  bool from_input;  /* -s */
  char *const *rest; /* the command or the script's file, and what follows */
};

static int refuse(const char *word, const char *why) {
  say("Cannot run 'substrate-sh ", word, "': ", why, NULL);
  return EXIT_FAILED;
}

/* Reads the letters of one word; `o` takes the next word. Returns how many words that are; 0: an unknown option. */
static int read_letters(struct asked *asked, char *const *at) {
  const char *word = *at;
  int used = 1;
  for (const char *letter = word + 1; *letter != 0; letter++) {
    if (*letter == 'o' && at[1] != NULL && used == 1) used = 2;
    else if (strchr(LETTERS, *letter) == NULL) return 0;
    if (*letter == 'c') asked->has_command = *word == '-';
    /* A world's shell reads no file of a person's, so an interactive one runs a command as any other. */
    else if (*letter != 'i') asked->has_options = true;
    if (*letter == 's') asked->from_input = true;
  }
  return used;
}

/* Reads the words. False, and says why, for words that cannot be run. */
static bool read_words(struct asked *asked, char *const words[]) {
  char *const *at = words;
  for (; *at != NULL && ((*at)[0] == '-' || (*at)[0] == '+') && (*at)[1] != 0; at++) {
    if (strcmp(*at, "--") == 0) break;
    int used = read_letters(asked, at);
    if (used == 0) {
      refuse(*at, "it takes '-c COMMAND [NAME ARGUMENT…]', '-s', 'FILE [ARGUMENT…]', and the options of sh(1)");
      return false;
    }
    at += used - 1;
  }
  /* Both end the options. */
  if (*at != NULL && (strcmp(*at, "--") == 0 || strcmp(*at, "-") == 0)) at++;
  asked->rest = at;
  if (!asked->has_command || *at != NULL) return true;
  refuse("-c", "a command must follow");
  return false;
}

/* The world's own /bin/sh, with the same words. */
static int become_sh(char *const words[]) {
  size_t count = 0;
  while (words[count] != NULL) count++;
  char **all = calloc(count + 1, sizeof *all);
  if (all != NULL) {
    memcpy(all, words, count * sizeof *all);
    all[0] = SH;
    execv(SH, all);
  }
  return refuse(SH, strerror(errno));
}

/* Node, by the verb that does the same. */
static int become_node(char *const words[]) {
  size_t count = 0;
  while (words[count] != NULL) count++;
  char **all = calloc(count + 2, sizeof *all);
  if (all == NULL) return refuse("", strerror(errno));
  all[0] = words[0];
  all[1] = "sh";
  memcpy(all + 2, words + 1, (count - 1) * sizeof *all);
  return node_become(all);
}

/* make -j runs several commands at one terminal, and the raw mode that one of them needs spoils the output of all others. */
static bool has_own_terminal(void) {
  const char *flags = getenv("MAKEFLAGS");
  return (flags == NULL || strstr(flags, "-j") == NULL) && terminal_is_ours();
}

/* A command alone is sent as text, as `exec` sends it; else /bin/sh gets the words as they are. */
static int run(const struct asked *asked, char *const words[]) {
  bool is_plain = asked->has_command && !asked->has_options && asked->rest[1] == NULL && *asked->rest[0] != 0;
  size_t count = 0;
  while (words[count] != NULL) count++;
  char **command = calloc(count + 2, sizeof *command);
  if (command == NULL) return refuse("", strerror(errno));
  command[0] = is_plain ? asked->rest[0] : SH;
  if (!is_plain) memcpy(command + 1, words, count * sizeof *command);
  struct options options = {.verb = EXEC, .is_program = !is_plain, .command = command, .has_terminal = has_own_terminal()};
  options.env = sh_variables(&options.env_count);
  return options.env == NULL ? refuse("", strerror(errno)) : exec_run(&options);
}

int sh_run(char *const words[]) {
  struct asked asked = {0};
  if (words[0] == NULL) return refuse("", "its name is missing");
  if (inside_world()) return become_sh(words);
  if (!read_words(&asked, words + 1)) return EXIT_FAILED;
  for (char *const *word = words + 1; *word != NULL; word++) {
    if (!buffer_is_text(*word)) return refuse("…", "a word is not UTF-8, and the broker would get another one");
  }
  bool is_typed = !asked.has_command && !asked.from_input && *asked.rest == NULL && isatty(STDIN_FILENO) == 1;
  int code = is_typed ? TO_NODE : run(&asked, words + 1);
  return code == TO_NODE ? become_node(words) : code;
}
