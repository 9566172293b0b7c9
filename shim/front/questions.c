#define _GNU_SOURCE
#include "questions.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../client/say.h"
#include "../client/terminal.h"
#include "../stream/refusal.h"
#include "../stream/signals.h"
#include "node.h"

/* The process that asks; 0: none. */
static pid_t asking;
static bool denied;

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

/* Collects the exit code of the process that asks, when it has ended; waits for it with `flags` 0. */
static void collect(int flags) {
  int status = 0;
  pid_t ended;
  do {
    ended = asking == 0 ? 0 : waitpid(asking, &status, flags);
  } while (ended < 0 && errno == EINTR);
  if (ended == 0) return;
  denied = denied || (ended > 0 && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_DENIED);
  asking = 0;
}

/* Starts Node with the words; what is left to say is NULL or the last option. */
static void start(const char *call, const char *option) {
  char *const words[] = {"substrate", "approvals", "--call", (char *)(uintptr_t)call, (char *)(uintptr_t)option, NULL};
  pid_t parent = getpid();
  asking = fork();
  if (asking < 0) {
    asking = 0;
    say("Cannot ask you: ", strerror(errno), NULL);
  }
  if (asking != 0) return;
  /* Without this process nobody would end it, and the terminal would stay as the question has set it. */
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(EXIT_FAILED);
  signals_let();
  _exit(node_become(words));
}

void questions_ask(const char *call) {
  collect(WNOHANG);
  if (asking == 0) start(call, NULL);
}

void questions_ask_alone(const char *call) {
  terminal_restore();
  start(call, "--waiting");
  signals_let();
  collect(0);
  signals_hold();
  signals_change();
}

bool questions_end(void) {
  if (asking != 0) kill(asking, SIGTERM);
  collect(0);
  return denied;
}
