#define _GNU_SOURCE
#include "terminal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "variables.h"

static struct termios usual;
static volatile sig_atomic_t is_taken;

/* How a person sees what is printed: scroll margins (setting them moves the cursor), origin (a soft reset moves none), colours and charset, wrapping, the cursor, locked
   keys, inserting, new lines, echo, reverse video (ECMA-48, xterm's ctlseqs). The same in Node (api/cli/terminal/screen-reset.ts). */
#define RESET_PICTURE "\0337\033[?69l\033[r\0338\033[!p\033[0m\033(B\017\033[?7h\033[?25h\033[2;4;20l\033[12h\033[?5l"
/* Palette and colours of text: only after output that has set them, because a person's shell may have colours of its own. */
#define RESET_COLOURS "\033]104\a\033]110\a\033]111\a\033]112\a"
/* The main screen; the cursor is saved for a terminal that shows it already. */
#define MAIN_SCREEN "\0337\033[?1049l"
/* What the terminal sends: cursor keys and keypad, mouse and focus, pastes; and output that it withholds. */
#define RESET_INPUT                                                                                       \
  "\033[?1l\033>\033[?9l\033[?1000l\033[?1002l\033[?1003l\033[?1004l\033[?1006l\033[?1015l\033[?1016l\033[?2004l" \
  "\033[?2026l"
/* Keys as kitty and xterm report them: an old terminal would print it. */
#define RESET_KEYS "\033[<99u\033[>4;0m"

static volatile sig_atomic_t has_output, has_colours, has_keys;

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

/* A terminal that is stopped by Ctrl-S would hold up a signal's handler. */
static void print_now(const char *text) {
  struct pollfd output = {STDERR_FILENO, POLLOUT, 0};
  if (poll(&output, 1, 0) == 1 && (output.revents & POLLOUT) != 0 && write(STDERR_FILENO, text, strlen(text)) < 0) return;
}

static void reset_picture(void) {
  if (has_output) print_now(RESET_PICTURE);
  if (has_colours) print_now(RESET_COLOURS);
  has_colours = 0;
}

static void reset_all(void) {
  if (has_output) print_now(MAIN_SCREEN);
  reset_picture();
  if (has_output) print_now(RESET_INPUT);
  if (has_keys) print_now(RESET_KEYS);
  has_output = has_keys = 0;
}

void terminal_lend(void) {
  if (isatty(STDERR_FILENO) == 1) reset_picture();
  if (is_taken && is_in_foreground()) tcsetattr(STDIN_FILENO, TCSANOW, &usual);
  is_taken = 0;
}

void terminal_restore(void) {
  int error = errno;
  if (is_taken && is_in_foreground()) {
    reset_all();
    tcflush(STDIN_FILENO, TCIFLUSH);
    tcsetattr(STDIN_FILENO, TCSANOW, &usual);
  }
  is_taken = 0;
  errno = error;
}

/* Whether OSC sets colours: 4, 5, and 10 to 19. */
static bool is_colour(const char *number, size_t length) {
  if (length == 0 || number[0] < '1' || number[0] > '5') return false;
  if (length > 1 && number[1] >= '0' && number[1] <= '9') return number[0] == '1';
  return number[0] == '4' || number[0] == '5';
}

/* What follows an escape character, or a byte that a terminal may take for a control of C1. */
static void see_escape(const char *next, size_t length) {
  has_output = 1;
  if (length > 1 && next[0] == ']') has_colours |= is_colour(next + 1, length - 1);
  if (length > 1 && next[0] == '[') has_keys |= next[1] == '>' || next[1] == '=';
}

static void see(const char *bytes, size_t length) {
  const char *end = bytes + length;
  for (const char *at = bytes; (at = memchr(at, '\033', (size_t)(end - at))) != NULL; at++) see_escape(at + 1, (size_t)(end - at) - 1);
  for (const char *at = bytes; (at = memchr(at, '\302', (size_t)(end - at))) != NULL; at++) {
    if (end - at < 2 || (unsigned char)at[1] < 0x80 || (unsigned char)at[1] > 0x9f) continue;
    char next[4] = {(char)(at[1] - 0x40)};
    size_t rest = (size_t)(end - at) - 2, more = rest < 3 ? rest : 3;
    memcpy(next + 1, at + 2, more);
    see_escape(next, 1 + more);
  }
}

void terminal_seen(const char *bytes, size_t length) {
  /* The end of the output before: a sequence may come in parts. */
  static char joined[16];
  static size_t kept;
  const size_t most = sizeof joined / 2;
  size_t first = length < most ? length : most;
  memcpy(joined + kept, bytes, first);
  if (kept > 0) see(joined, kept + first);
  see(bytes, length);
  if (length >= most) memcpy(joined, bytes + length - (most - 1), kept = most - 1);
  else {
    size_t all = kept + first, keep = all < most - 1 ? all : most - 1;
    memmove(joined, joined + all - keep, keep);
    kept = keep;
  }
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
