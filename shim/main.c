/* The program behind every name in the shims folder: asks the broker, then becomes the real program or, where the policy
   isolates that, the client of the broker that runs it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/broker.h"
#include "client/home.h"
#include "client/json.h"
#include "client/say.h"
#include "isolated.h"
#include "leave.h"
#include "program.h"
#include "question.h"
#include "watch.h"

#define DENIED 126
#define NOT_FOUND 127

#define ANSWER_SECONDS 10

/* HTTP status 102 (RFC 2518): another answer follows. */
#define WAITS 102

#define NO_ANSWER "the broker did not answer"
#define LOOK "Look at 'substrate broker status'"

static char name[NAME_MAX + 1];

static int refuse(const char *message, const char *hint) {
  say(name, ": ", message, ". ", hint, NULL);
  return DENIED;
}

/* Runs a script without a `#!` line with /bin/sh, as execvp(3) and every shell do. */
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

/* Python looks on PATH for its own name and would find the shim: sys.executable, and with it each virtual environment,
   would lead to the shims folder, which no world has. */
static bool looks_for_itself(const char *called) {
  return strchr(called, '/') == NULL && (strncmp(called, "python", 6) == 0 || strncmp(called, "pypy", 4) == 0);
}

static int become(const struct program *program, char *words[]) {
  if (looks_for_itself(words[0])) words[0] = (char *)program->path;
  execv(program->path, words);
  if (errno == ENOEXEC) become_script(program->path, words);
  int error = errno;
  say("cannot start '", program->path, "': ", strerror(error), NULL);
  return error == ENOENT ? NOT_FOUND : DENIED;
}

/* Chooses the agent's own socket if present: the broker refuses such an agent on the shared socket. */
static void socket_path(char path[PATH_MAX], const char *agent) {
  if (!home_own_socket(path, agent)) home_path(path, "sock/agent.sock");
}

/* Obeys shims/.offline, which the broker writes whenever it reads its policies. A missing or unreadable file
   denies. */
static int without_broker(const struct program *program, char *words[]) {
  char path[PATH_MAX], rule[8] = "";
  home_path(path, "shims/.offline");
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  ssize_t length = file < 0 ? 0 : read(file, rule, sizeof rule - 1);
  if (file >= 0) close(file);
  if (length == 6 && memcmp(rule, "allow\n", 6) == 0) {
    say("no broker runs, and nothing records this call of '", name, "'", NULL);
    return become(program, words);
  }
  return refuse("no broker runs, and the last policy denies commands without a broker", "Run 'substrate broker start'");
}

static int refused(struct json document) {
  struct json error = json_member(document, "error");
  char *message = json_copy(json_member(error, "message")), *hint = json_copy(json_member(error, "hint"));
  return refuse(message == NULL ? "cannot read the broker's answer" : message, hint == NULL ? "Look at 'substrate broker logs'" : hint);
}

/* Waits for the verdict, which the broker has recorded by then. Where a person must approve, status 102 comes
   at once. */
static struct answer hear(struct broker *broker) {
  struct answer answer = broker_answer(broker, ANSWER_SECONDS);
  if (answer.status != WAITS) return answer;
  say("'", name, "' waits for a person to approve it: substrate approvals", NULL);
  return broker_answer(broker, APPROVAL_SECONDS + ANSWER_SECONDS);
}

/* The broker has recorded nothing yet: the span is that of the stream. */
static bool must_be_isolated(const struct answer *answer, struct json document) {
  return answer->status == 200 && json_is(json_member(document, "verdict"), "isolate");
}

static int run_isolated(const struct program *program, const char *agent, const char *socket, char *const words[]) {
  int code = isolated_run(program, agent, socket, words);
  return code < 0 ? refuse("the broker did not take the command, which the policy isolates", LOOK) : code;
}

/* Users of SHIM_BYPASS expect a record, so stderr reports a missing record. */
static int bypass_unrecorded(const struct program *program, char *words[]) {
  say("SHIM_BYPASS=1: nothing records this call of '", name, "'", NULL);
  return become(program, words);
}

/* Test suites give their programs another HOME, and `env -i` none: the folder of the shims tells whose they are. */
static bool find_home(const struct program *program) {
  const char *given = getenv("SUBSTRATE_HOME");
  char path[PATH_MAX];
  if (given != NULL && *given != 0) return true;
  home_path(path, "shims/.offline");
  return access(path, F_OK) == 0 || program->home[0] == 0 || setenv("SUBSTRATE_HOME", program->home, 1) == 0;
}

static int run(const struct program *program, char *words[]) {
  static char socket[PATH_MAX];
  const char *bypass = getenv("SHIM_BYPASS"), *agent = getenv("SUBSTRATE_AGENT_ID");
  bool bypassed = bypass != NULL && strcmp(bypass, "1") == 0;
  if (agent == NULL || *agent == 0) agent = "human";
  struct broker broker;
  if (!find_home(program)) return refuse("out of memory", "Try again");
  socket_path(socket, agent);
  if (!broker_open(&broker, socket)) {
    if (bypassed) return bypass_unrecorded(program, words);
    return errno == EAGAIN ? refuse(NO_ANSWER, LOOK) : without_broker(program, words);
  }
  struct buffer start = question_start(program, agent, words, bypassed);
  bool sent = broker_send(&broker, "/v1/report", &start);
  /* Free before the fork: the body may have megabytes, and the watcher would keep a copy. */
  buffer_free(&start);
  int watcher = sent ? watch_start(socket, agent) : -1, error = errno;
  struct answer answer = sent ? hear(&broker) : (struct answer){0, NULL, NULL};
  broker_close(&broker);
  if (answer.status != 200 && bypassed) return bypass_unrecorded(program, words);
  if (answer.status == 0) return refuse(NO_ANSWER, LOOK);
  struct json document = json_document(answer.body, strlen(answer.body));
  if (must_be_isolated(&answer, document)) {
    if (watcher >= 0) close(watcher);
    return run_isolated(program, agent, socket, words);
  }
  char *span = answer.status == 200 ? json_copy(json_member(document, "span_id")) : NULL;
  if (span == NULL) return refused(document);
  if (setenv("SUBSTRATE_PARENT_SPAN", span, 1) < 0) return refuse("out of memory", "Try again");
  if (watcher >= 0 && !watch_for(watcher, span)) error = errno, watcher = -1;
  /* Run the program even without a watcher: the span stays open until the next broker closes the span as
     lost. */
  if (watcher < 0) say("the end of '", name, "' will not be recorded: ", strerror(error), NULL);
  return become(program, words);
}

int main(int count, char *words[]) {
  static struct program program;
  leave_world();
  if (count > 0) program_name(name, words[0]);
  if (count < 1 || strcmp(name, SHIM_FILE) == 0) {
    fputs("This program records calls of other programs: 'substrate shim install NAME' puts it on PATH under their names\n", stderr);
    return 125;
  }
  program_find(&program, name);
  if (program.path[0] == 0) {
    say("'", name, "' is not installed: PATH has only its shim", NULL);
    return NOT_FOUND;
  }
  return run(&program, words);
}
