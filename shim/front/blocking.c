#define _GNU_SOURCE
#include "blocking.h"

#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include "../client/buffer.h"
#include "../client/descriptors.h"
#include "../client/say.h"

/* By which agents block a tool and show the model what stands on standard error. */
#define BLOCK 2

/* Agents wait 60 seconds or longer for a hook. */
#define MOST_SECONDS 20

/* Every signal that ends a process and can be caught (signal(7)). */
static const int ENDING[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGILL,  SIGTRAP, SIGABRT,   SIGBUS,  SIGFPE,    SIGUSR1, SIGSEGV,
                             SIGUSR2, SIGPIPE, SIGALRM, SIGTERM, SIGXCPU, SIGXFSZ, SIGVTALRM, SIGPROF, SIGIO,   SIGPWR,
                             SIGSYS,  SIGSTKFLT};

/* For an event that is recorded, its agent waits in vain. */
#define MOST_RECORDING_SECONDS 5

static volatile sig_atomic_t only_records;

static void on_signal(int number) {
  static const char LOST[] = "substrate: A signal ended the hook, or five seconds passed. The event is not recorded\n";
  static const char LATE[] = "substrate: The hook had no verdict after 20 seconds. Nothing ran\n";
  static const char ENDED[] = "substrate: A signal ended the hook before its verdict. Nothing ran\n";
  if (only_records) {
    ssize_t told = write(STDERR_FILENO, LOST, sizeof LOST - 1);
    (void)told;
    _exit(0);
  }
  ssize_t written = number == SIGALRM ? write(STDERR_FILENO, LATE, sizeof LATE - 1) : write(STDERR_FILENO, ENDED, sizeof ENDED - 1);
  (void)written;
  _exit(BLOCK);
}

void blocking_begin(void) {
  struct sigaction action = {.sa_handler = on_signal};
  sigset_t none;
  for (size_t i = 0; i < sizeof ENDING / sizeof *ENDING; i++) sigaction(ENDING[i], &action, NULL);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  alarm(MOST_SECONDS);
}

void blocking_never(void) {
  only_records = 1;
  alarm(MOST_RECORDING_SECONDS);
}

static bool explains;

void blocking_explain(void) {
  explains = true;
}

static void explain(const char *why) {
  struct buffer answer = {0};
  buffer_text(&answer, "{\"permissionDecision\":\"deny\"");
  buffer_field(&answer, "permissionDecisionReason", why);
  buffer_text(&answer, "}\n");
  /* Exit code 2 blocks without it too. */
  if (!answer.failed && !write_all(STDOUT_FILENO, answer.data, answer.length)) return;
}

void blocking_end(const char *part, ...) {
  struct buffer text = {0};
  va_list parts;
  va_start(parts, part);
  for (; part != NULL; part = va_arg(parts, const char *)) buffer_text(&text, part);
  va_end(parts);
  say(text.data == NULL ? "Not enough memory" : text.data, only_records ? ". The event is not recorded" : ". Nothing ran", NULL);
  if (only_records) _exit(0);
  buffer_text(&text, ". Nothing ran");
  if (explains && !text.failed) explain(text.data);
  _exit(BLOCK);
}
