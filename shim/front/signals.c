#define _GNU_SOURCE
#include "signals.h"

#include <unistd.h>

static const int TAKEN[] = {SIGINT, SIGTERM, SIGHUP};

static volatile sig_atomic_t first;
static sigset_t before, taken;

static void on_signal(int number) {
  if (first != 0) _exit(128 + number);
  first = number;
}

void signals_take(void) {
  struct sigaction action = {.sa_handler = on_signal}, old;
  sigemptyset(&taken);
  for (size_t i = 0; i < sizeof TAKEN / sizeof *TAKEN; i++) {
    if (sigaction(TAKEN[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN) sigaddset(&taken, TAKEN[i]);
  }
  action.sa_mask = taken;
  sigprocmask(SIG_BLOCK, &taken, &before);
  for (size_t i = 0; i < sizeof TAKEN / sizeof *TAKEN; i++) {
    if (sigismember(&taken, TAKEN[i]) == 1) sigaction(TAKEN[i], &action, NULL);
  }
}

int signals_first(void) {
  return first;
}

const char *signals_first_name(void) {
  return first == SIGINT ? "SIGINT" : first == SIGTERM ? "SIGTERM" : "SIGHUP";
}

const sigset_t *signals_mask(void) {
  return &before;
}

void signals_let(void) {
  sigprocmask(SIG_SETMASK, &before, NULL);
}

void signals_hold(void) {
  sigprocmask(SIG_BLOCK, &taken, NULL);
}
