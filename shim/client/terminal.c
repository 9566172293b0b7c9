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

/* Makes what is printed next look as it is (ECMA-48, xterm's ctlseqs): scroll margins, with the cursor saved because setting them moves
   it; origin; colours and charset; wrapping; the cursor; locked keys, inserting, new lines, echo; reverse video. The same in Node
   (api/cli/terminal/screen-reset.ts). */
#define RESET_PICTURE "\0337\033[?69l\033[r\0338\033[!p\033[0m\033(B\017\033[?7h\033[?25h\033[2;4;20l\033[12h\033[?5l"
#define RESET_STYLE "\033[0m"
/* Palette and colours of text: only after output that may have set them, because a person's shell may have colours of its own. */
#define RESET_COLOURS "\033]104\a\033]105\a\033]110\a\033]111\a\033]112\a"
/* Only there: other terminals wait for the end of such a sequence. */
#define RESET_CONSOLE "\033]R"
/* The main screen, with the cursor where it was before the other one; and for a terminal that may show the main screen already:
   tmux puts the cursor back on 1049 then too, where the last program left it. */
#define LEAVE_SCREEN "\033[?1049l"
#define MAIN_SCREEN "\033[?1047l"
/* What the terminal sends: cursor keys and keypad, mouse and focus, pastes; and output that it withholds. */
#define RESET_INPUT                                                                                       \
  "\033[?1l\033>\033[?9l\033[?1000l\033[?1002l\033[?1003l\033[?1004l\033[?1006l\033[?1015l\033[?1016l\033[?2004l" \
  "\033[?2026l"
/* Keys as kitty and xterm report them: an old terminal would print it. */
#define RESET_KEYS "\033[<99u\033[>4;0m"

/* What output has done since the terminal was the shell's: used escapes; set more than the style of text; a mode; colours; keys. */
static volatile sig_atomic_t has_style, has_picture, has_modes, has_colours, has_keys;
static volatile sig_atomic_t is_on_other_screen;
static bool is_console;

/* Longest wait for room in a terminal that is slow, or stopped by Ctrl-S. */
#define PRINT_MS 2000

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
  const char *term = variable("TERM");
  is_console = term != NULL && strcmp(term, "linux") == 0;
  is_taken = 1;
  if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) < 0) is_taken = 0;
}

/* In a signal's handler `wait` is 0. */
static void print(const char *text, int wait) {
  struct pollfd output = {STDERR_FILENO, POLLOUT, 0};
  size_t length = strlen(text);
  while (length > 0 && poll(&output, 1, wait) == 1 && (output.revents & POLLOUT) != 0) {
    ssize_t written = write(STDERR_FILENO, text, length);
    if (written < 0) return;
    text += written;
    length -= (size_t)written;
  }
}

static void reset_colours(int wait) {
  if (has_colours) print(RESET_COLOURS, wait);
  if (has_colours && is_console) print(RESET_CONSOLE, wait);
  has_colours = 0;
}

static void reset_picture(int wait) {
  if (has_picture) print(RESET_PICTURE, wait);
  else if (has_style) print(RESET_STYLE, wait);
  reset_colours(wait);
}

static void reset_all(int wait) {
  if (has_modes) print(is_on_other_screen ? LEAVE_SCREEN : MAIN_SCREEN, wait);
  reset_picture(wait);
  if (has_modes) print(RESET_INPUT, wait);
  if (has_keys) print(RESET_KEYS, wait);
  has_style = has_picture = has_modes = has_keys = is_on_other_screen = 0;
}

void terminal_lend(void) {
  if (isatty(STDERR_FILENO) == 1) reset_picture(PRINT_MS);
  if (is_taken && is_in_foreground()) tcsetattr(STDIN_FILENO, TCSANOW, &usual);
  is_taken = 0;
}

void terminal_left(void) {
  if (isatty(STDERR_FILENO) == 1) reset_colours(PRINT_MS);
}

static void restore(int wait) {
  int error = errno;
  if (is_taken && is_in_foreground()) {
    reset_all(wait);
    tcflush(STDIN_FILENO, TCIFLUSH);
    tcsetattr(STDIN_FILENO, TCSANOW, &usual);
  }
  is_taken = 0;
  errno = error;
}

void terminal_restore(void) {
  restore(PRINT_MS);
}

void terminal_restore_now(void) {
  restore(0);
}

/* Commands of the system (OSC) that set no colour: titles, folders, links, marks of a shell, notes, the clipboard. */
static bool is_colourless(const char *number, size_t length) {
  static const char *const KNOWN[] = {"0;", "1;", "2;", "7;", "8;", "9;", "52;", "133;"};
  for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++) {
    size_t known = strlen(KNOWN[i]), common = length < known ? length : known;
    if (strncmp(number, KNOWN[i], common) == 0) return true;
  }
  return false;
}

/* Whether a sequence sets the style of text alone, or erases a line's rest. */
static bool is_style(const char *parameters, size_t length) {
  size_t at = 0;
  while (at < length && strchr("0123456789:;", parameters[at]) != NULL && parameters[at] != 0) at++;
  return at < length && (parameters[at] == 'm' || parameters[at] == 'K');
}

/* A sequence may come in parts, or begin with a control of C1: so many bytes of it are looked at. */
#define LONGEST 16

/* Notes the screen that a private mode selects: `1049h`, `25;1049l`, 47 and 1047. */
static void see_screen(const char *mode, size_t length) {
  bool selects = false;
  for (size_t at = 0; at < length;) {
    size_t digits = 0;
    while (at + digits < length && mode[at + digits] >= '0' && mode[at + digits] <= '9') digits++;
    size_t zeros = 0;
    while (zeros < digits && mode[at + zeros] == '0') zeros++;
    const char *number = mode + at + zeros;
    size_t rest = digits - zeros;
    selects = selects || (rest == 2 && memcmp(number, "47", 2) == 0) ||
              (rest == 4 && (memcmp(number, "1047", 4) == 0 || memcmp(number, "1049", 4) == 0));
    at += digits;
    if (at >= length) return;
    char end = mode[at++];
    if (selects && (end == 'h' || end == 'l')) is_on_other_screen = end == 'h';
    if (end != ';') return;
  }
}

static bool is_control(char byte) {
  return (unsigned char)byte < 0x20 || byte == 0x7f;
}

/* What follows an escape character, or a byte that a terminal may take for a control of C1. Terminals skip controls inside a sequence. */
static void see_escape(const char *next, size_t length) {
  has_style = 1;
  if (length == 0) return;
  bool is_long = next[0] == '[' || next[0] == ']';
  bool hides = is_control(next[0]) || (is_long && length > 1 && is_control(next[1]));
  if (next[0] != '[' || !is_style(next + 1, length - 1)) has_picture = 1;
  if (hides || next[0] == '=' || next[0] == 'c' || (next[0] == '[' && length > 1 && next[1] == '?')) has_modes = 1;
  if (next[0] == 'c') is_on_other_screen = 0;
  if (next[0] == '[' && length > 1 && next[1] == '?') see_screen(next + 2, length - 2);
  if (hides || (next[0] == ']' && !is_colourless(next + 1, length - 1))) has_colours = 1;
  if (hides || (next[0] == '[' && length > 1 && strchr(">=<", next[1]) != NULL)) has_keys = 1;
}

/* A control of C1 in UTF-8, as the escape character and a letter. */
static void see_control(const char *at, size_t length) {
  if (length < 2 || (unsigned char)at[1] < 0x80 || (unsigned char)at[1] > 0x9f) return;
  char next[LONGEST] = {(char)(at[1] - 0x40)};
  size_t rest = length - 2, more = rest < sizeof next - 1 ? rest : sizeof next - 1;
  memcpy(next + 1, at + 2, more);
  see_escape(next, 1 + more);
}

/* In the order of the output: the last sequence that selects a screen holds. */
static void see(const char *bytes, size_t length) {
  const char *end = bytes + length;
  const char *escape = memchr(bytes, '\033', length), *control = memchr(bytes, '\302', length);
  while (escape != NULL || control != NULL) {
    if (control == NULL || (escape != NULL && escape < control)) {
      see_escape(escape + 1, (size_t)(end - escape) - 1);
      escape = memchr(escape + 1, '\033', (size_t)(end - escape) - 1);
    } else {
      see_control(control, (size_t)(end - control));
      control = memchr(control + 1, '\302', (size_t)(end - control) - 1);
    }
  }
}

void terminal_seen(const char *bytes, size_t length) {
  /* The end of the output before: a sequence may come in parts. */
  static char joined[2 * LONGEST];
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
