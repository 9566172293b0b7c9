/* The one program behind every name in the shims folder: asks the broker, then becomes the real program. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker.h"
#include "program.h"
#include "question.h"
#include "watch.h"

#define DENIED 126
#define NOT_FOUND 127

#define ANSWER_SECONDS 10

#define NO_ANSWER "the broker did not answer"
#define LOOK "Look at 'substrate broker status'"

static char name[NAME_MAX + 1];

/* What comes from a policy or a command may hold what a terminal obeys. */
static void say(const char *text) {
  for (; *text != 0; text++) {
    if ((unsigned char)*text < 0x20 || *text == 0x7f) fprintf(stderr, "\\x%02x", (unsigned char)*text);
    else fputc(*text, stderr);
  }
}

static int refuse(const char *message, const char *hint) {
  fputs("substrate: ", stderr);
  say(name);
  fputs(": ", stderr);
  say(message);
  fputs(". ", stderr);
  say(hint);
  fputs("\n", stderr);
  return DENIED;
}

/* What has no first line that names its interpreter is the shell's to execvp(3) and to every shell. */
static void become_script(const char *path, char *const words[]) {
  size_t count = 0;
  while (words[count] != NULL) count++;
  char **script = calloc(count + 2, sizeof *script);
  if (script == NULL) return;
  script[0] = "/bin/sh";
  script[1] = (char *)path;
  for (size_t i = 1; i < count; i++) script[i + 1] = words[i];
  execv(script[0], script);
}

static int become(const struct program *program, char *const words[]) {
  execv(program->path, words);
  if (errno == ENOEXEC) become_script(program->path, words);
  fprintf(stderr, "substrate: cannot start '%s': %s\n", program->path, strerror(errno));
  return errno == ENOENT ? NOT_FOUND : DENIED;
}

static bool is_file(const char *path) {
  return access(path, F_OK) == 0;
}

/* SUBSTRATE_HOME, or where it is without that; empty when it does not fit. */
static void home_path(char path[PATH_MAX], const char *below) {
  const char *root = getenv("SUBSTRATE_HOME"), *home = getenv("HOME");
  bool given = root != NULL && *root != 0;
  int length = snprintf(path, PATH_MAX, "%s%s/%s", given ? root : home == NULL ? "" : home, given ? "" : "/.substrate", below);
  if (length < 0 || length >= PATH_MAX) path[0] = 0;
}

/* An agent with a socket of its own cannot be had on the one of all. */
static void socket_path(char path[PATH_MAX], const char *agent) {
  char below[PATH_MAX];
  snprintf(below, sizeof below, "sock/agents/%s.sock", agent);
  home_path(path, below);
  if (strchr(agent, '/') != NULL || !is_file(path)) home_path(path, "sock/agent.sock");
}

/* What the broker wrote there when it last read its policies. Nothing to be read is a no. */
static int without_broker(const struct program *program, char *const words[]) {
  char path[PATH_MAX], rule[8] = "";
  home_path(path, "shims/.offline");
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  ssize_t length = file < 0 ? 0 : read(file, rule, sizeof rule - 1);
  if (file >= 0) close(file);
  if (length == 5 && memcmp(rule, "pass\n", 5) == 0) {
    fprintf(stderr, "substrate: no broker runs, and nothing records this call of '%s'\n", name);
    return become(program, words);
  }
  return refuse("no broker runs, and the last policy that it read denies without one", "Run 'substrate broker start'");
}

static int refused(const struct answer *answer) {
  char *message = json_string(answer->body, "message"), *hint = json_string(answer->body, "hint");
  return refuse(message == NULL ? "the broker's answer cannot be read" : message, hint == NULL ? "Look at 'substrate broker logs'" : hint);
}

/* The answer to the start, after that to the question. A person is asked between the two. */
static struct answer ask(struct broker *broker, const struct buffer *check, const struct buffer *start) {
  struct answer none = {0, NULL};
  if (!broker_send(broker, "/v1/check", check) || !broker_send(broker, "/v1/report", start)) return none;
  struct answer decided = broker_answer(broker, ANSWER_SECONDS);
  if (decided.status != 200) return decided;
  char *verdict = json_string(decided.body, "verdict");
  bool waits = verdict != NULL && strcmp(verdict, "ask") == 0;
  if (waits) fprintf(stderr, "substrate: '%s' waits for a person to approve it: substrate approvals\n", name);
  return broker_answer(broker, waits ? APPROVAL_SECONDS + ANSWER_SECONDS : ANSWER_SECONDS);
}

static int run(const struct program *program, char *const words[]) {
  static char socket[PATH_MAX];
  const char *bypass = getenv("SHIM_BYPASS"), *agent = getenv("SUBSTRATE_AGENT_ID");
  bool bypassed = bypass != NULL && strcmp(bypass, "1") == 0;
  if (agent == NULL || *agent == 0) agent = "human";
  struct broker broker;
  socket_path(socket, agent);
  if (!broker_open(&broker, socket)) {
    if (bypassed) return become(program, words);
    return errno == EAGAIN ? refuse(NO_ANSWER, LOOK) : without_broker(program, words);
  }
  struct buffer check = question_check(program, agent, words);
  struct buffer start = question_start(&check, bypassed);
  struct answer answer = ask(&broker, &check, &start);
  broker_close(&broker);
  if (answer.status != 200 && bypassed) return become(program, words);
  if (answer.status == 0) return refuse(NO_ANSWER, LOOK);
  char *span = answer.status == 200 ? json_string(answer.body, "span_id") : NULL;
  if (span == NULL) return refused(&answer);
  if (setenv("SUBSTRATE_PARENT_SPAN", span, 1) < 0) return refuse("there is no memory", "Try again");
  /* Without it the span stays open until the next broker closes it as lost: no reason to keep the program from running. */
  if (watch_start(socket, agent, span) < 0) fprintf(stderr, "substrate: the end of '%s' will not be recorded: %s\n", name, strerror(errno));
  return become(program, words);
}

int main(int count, char *words[]) {
  static struct program program;
  if (count > 0) program_name(name, words[0]);
  if (count < 1 || strcmp(name, SHIM_FILE) == 0) {
    fputs("This program stands for others: 'substrate shim install NAME' links it under their names\n", stderr);
    return 125;
  }
  program_find(&program, name);
  if (program.path[0] == 0) {
    fprintf(stderr, "substrate: '%s' is not installed: PATH has its shim alone\n", name);
    return NOT_FOUND;
  }
  return run(&program, words);
}
