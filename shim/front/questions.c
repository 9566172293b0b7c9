#define _GNU_SOURCE
#include "questions.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "../client/say.h"
#include "../client/terminal.h"
#include "../stream/refusal.h"
#include "../stream/signals.h"
#include "node.h"

/* The process that asks; 0: none. */
static pid_t asking;
static bool denied;

/* The terminal's modes before the question. */
static struct termios before;
static bool has_modes;

bool questions_possible(void) {
  return isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
}

bool questions_name(char call[CALL_SIZE]) {
  uint8_t bytes[16];
  if (getrandom(bytes, sizeof bytes, GRND_NONBLOCK) != sizeof bytes) return false;
  bytes[6] = (uint8_t)(0x40 | (bytes[6] & 0x0f)); /* version and variant (RFC 9562, 5.4) */
  bytes[8] = (uint8_t)(0x80 | (bytes[8] & 0x3f));
  char *at = call;
  for (size_t i = 0; i < sizeof bytes; i++) {
    if (i == 4 || i == 6 || i == 8 || i == 10) *at++ = '-';
    at += sprintf(at, "%02x", bytes[i]);
  }
  return true;
}

/* A process that was killed leaves the terminal as the question has set it: not even Ctrl-C is a signal then. */
static void mend_terminal(void) {
  static const char WORDS[] = "\r\nsubstrate: the question was killed; 'substrate approvals' lists what waits\r\n";
  if (!has_modes || tcgetpgrp(STDIN_FILENO) != getpgrp()) return;
  tcsetattr(STDIN_FILENO, TCSANOW, &before);
  if (write(STDERR_FILENO, WORDS, sizeof WORDS - 1) < 0) return;
}

/* A stopped process hears nothing before SIGCONT. */
static void end(pid_t child) {
  kill(child, SIGTERM);
  kill(child, SIGCONT);
}

/* Waits for the process that asks, and collects its exit code. */
static void collect(void) {
  int status = 0;
  pid_t child = asking, ended;
  if (child == 0) return;
  while ((ended = waitpid(child, &status, 0)) < 0 && errno == EINTR) {
    /* A signal for this process must not wait for the person. */
    if (signals_first() != 0) end(child);
  }
  denied = denied || (ended > 0 && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_DENIED);
  if (ended > 0 && WIFSIGNALED(status) && WTERMSIG(status) != SIGTERM) mend_terminal();
  asking = 0;
}

static void start(const char *call) {
  static char *const WORDS[] = {"substrate", "approvals", "--call", NULL};
  pid_t parent = getpid();
  has_modes = tcgetattr(STDIN_FILENO, &before) == 0;
  asking = fork();
  if (asking < 0) {
    asking = 0;
    say("Cannot ask you: ", strerror(errno), NULL);
  }
  if (asking != 0) return;
  /* Without this process nobody would end it, and the terminal would stay as the question has set it. */
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(EXIT_FAILED);
  /* Not among the words: every user can read those, and could put a question of another call here. */
  if (setenv("SUBSTRATE_CALL", call, 1) < 0) _exit(EXIT_FAILED);
  signals_let();
  _exit(node_become(WORDS));
}

/* The command's output waits meanwhile: what a command prints beside a question could pass for another question. */
void questions_ask(const char *call, const char *approval) {
  (void)approval;
  terminal_lend();
  start(call);
  signals_let();
  collect();
  signals_hold();
}

void questions_say(const char *call, const char *approval) {
  static char last[64];
  (void)call;
  if (strcmp(approval, last) == 0) return;
  snprintf(last, sizeof last, "%s", approval);
  say("waiting for approval: 'substrate approve ", approval, " --once' or 'substrate deny ", approval,
      "' answers, 'substrate approvals' shows the question", NULL);
}

bool questions_denied(void) {
  return denied;
}
