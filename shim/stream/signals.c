#define _GNU_SOURCE
#include "signals.h"

#include <unistd.h>

#include "../client/terminal.h"

static const int TAKEN[] = {SIGINT, SIGTERM, SIGHUP};

/* After these the terminal has perhaps another size, or the modes of the shell that continued this job. */
static const int CHANGING[] = {SIGWINCH, SIGCONT};

static const int STOPPING[] = {SIGTSTP};

/* Signals that end a process by default, besides TAKEN and SIGKILL (signal(7)): crashes too. */
static const int ENDING[] = {SIGQUIT, SIGILL,  SIGTRAP, SIGABRT,   SIGBUS,  SIGFPE,  SIGUSR1, SIGSEGV,   SIGUSR2, SIGPIPE,
                             SIGALRM, SIGXCPU, SIGXFSZ, SIGVTALRM, SIGPROF, SIGPOLL, SIGPWR,  SIGSTKFLT, SIGSYS};

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* `changed` is set at first: the size is sent once the command has started. */
static volatile sig_atomic_t first, changed = 1;
static sigset_t before, taken;

static void on_signal(int number) {
  if (first != 0) {
    terminal_restore_now();
    if (number == SIGINT && terminal_is_in_front()) signals_interrupt();
    _exit(128 + number);
  }
  first = number;
}

static void on_change(int number) {
  (void)number;
  changed = 1;
}

/* SIGTSTP from another process: a terminal that is taken types no Ctrl-Z at this one. The default action stops, except a job
   that no shell could continue; so the terminal is looked at anew without a SIGCONT too. */
static void on_stop(int number) {
  struct sigaction own;
  sigset_t stop;
  terminal_restore_now();
  sigemptyset(&stop);
  sigaddset(&stop, number);
  sigaction(number, &(struct sigaction){.sa_handler = SIG_DFL}, &own);
  raise(number);
  sigprocmask(SIG_UNBLOCK, &stop, NULL);
  sigprocmask(SIG_BLOCK, &stop, NULL);
  sigaction(number, &own, NULL);
  changed = 1;
}

void signals_stop(void) {
  if (sigismember(&taken, SIGTSTP) != 1) return;
  terminal_restore();
  kill(0, SIGTSTP);
  on_stop(SIGTSTP);
}

/* Takes effect after the handler, with the default that SA_RESETHAND has set. */
static void on_end(int number) {
  terminal_restore_now();
  raise(number);
}

/* Adds the signals that are not ignored. */
static void add_heard(sigset_t *set, const int *list, size_t count) {
  struct sigaction old;
  for (size_t i = 0; i < count; i++) {
    if (sigaction(list[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN) sigaddset(set, list[i]);
  }
}

static void handle(const sigset_t *heard, const int *list, size_t count, struct sigaction action) {
  for (size_t i = 0; i < count; i++) {
    if (sigismember(heard, list[i]) == 1) sigaction(list[i], &action, NULL);
  }
}

static void take_terminals(void) {
  sigset_t ending;
  sigemptyset(&ending);
  add_heard(&ending, ENDING, COUNT(ENDING));
  handle(&ending, ENDING, COUNT(ENDING), (struct sigaction){.sa_handler = on_end, .sa_flags = (int)SA_RESETHAND});
  handle(&taken, CHANGING, COUNT(CHANGING), (struct sigaction){.sa_handler = on_change});
  handle(&taken, STOPPING, COUNT(STOPPING), (struct sigaction){.sa_handler = on_stop});
}

void signals_take(bool terminal) {
  struct sigaction action = {.sa_handler = on_signal};
  sigemptyset(&taken);
  add_heard(&taken, TAKEN, COUNT(TAKEN));
  action.sa_mask = taken;
  if (terminal) {
    add_heard(&taken, STOPPING, COUNT(STOPPING));
    add_heard(&taken, CHANGING, COUNT(CHANGING));
  }
  sigprocmask(SIG_BLOCK, &taken, &before);
  handle(&taken, TAKEN, COUNT(TAKEN), action);
  if (terminal) take_terminals();
}

int signals_first(void) {
  return first;
}

const char *signals_first_name(void) {
  return first == SIGINT ? "SIGINT" : first == SIGTERM ? "SIGTERM" : "SIGHUP";
}

bool signals_changed(void) {
  bool has_changed = changed != 0;
  changed = 0;
  return has_changed;
}

void signals_change(void) {
  changed = 1;
}

void signals_interrupt(void) {
  struct sigaction own;
  /* Ignored, as in the background of a script, it stays so. */
  if (sigaction(SIGINT, NULL, &own) < 0 || own.sa_handler == SIG_IGN) return;
  signal(SIGINT, SIG_DFL);
  raise(SIGINT);
  signals_let();
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
