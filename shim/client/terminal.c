#define _GNU_SOURCE
#include "terminal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "variables.h"

static struct termios usual;
static volatile sig_atomic_t is_taken;

/* tcsetattr(3) in the background would stop the process by SIGTTOU, or change the modes of the job in front. */
static bool is_in_foreground(void) {
  return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

bool terminal_is_ours(void) {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
    if (isatty(fd) != 1) return false;
  }
  return is_in_foreground();
}

bool terminal_is_in_front(void) {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
    if (isatty(fd) == 1 && tcgetpgrp(fd) == getpgrp()) return true;
  }
  return false;
}

void terminal_take(void) {
  if (!is_in_foreground() || (!is_taken && tcgetattr(STDIN_FILENO, &usual) < 0)) return;
  struct termios raw = usual;
  cfmakeraw(&raw);
  is_taken = 1;
  if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) < 0) is_taken = 0;
}

void terminal_restore(void) {
  int error = errno;
  if (is_taken && is_in_foreground()) tcsetattr(STDIN_FILENO, TCSANOW, &usual);
  is_taken = 0;
  errno = error;
}

void terminal_size(unsigned *columns, unsigned *rows) {
  struct winsize size = {0};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0) size = (struct winsize){0};
  *columns = size.ws_col > 0 ? size.ws_col : 80;
  *rows = size.ws_row > 0 ? size.ws_row : 24;
}

/* TERM with other characters is no name of terminfo, and the broker refuses it (schemas/stream-options). */
#define TERM_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+-"
#define TERM_LENGTH 128

void terminal_add(struct buffer *body) {
  const char *term = variable("TERM");
  char size[96];
  unsigned columns, rows;
  terminal_size(&columns, &rows);
  snprintf(size, sizeof size, ",\"pty\":true,\"job_control\":true,\"cols\":%u,\"rows\":%u", columns, rows);
  buffer_text(body, size);
  if (term != NULL && strlen(term) <= TERM_LENGTH && term[strspn(term, TERM_CHARACTERS)] == 0) buffer_field(body, "term", term);
}
