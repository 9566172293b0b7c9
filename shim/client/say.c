#include "say.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "buffer.h"
#include "descriptors.h"
#include "terminal.h"
#include "unseen.h"

/* More marks on a letter cover the rows above and below. */
#define MOST_MARKS 2

static bool is_in(const struct range *ranges, size_t count, unsigned code) {
  size_t from = 0, to = count;
  while (from < to) {
    size_t middle = from + (to - from) / 2;
    if (code > ranges[middle].last) from = middle + 1;
    else to = middle;
  }
  return from < count && code >= ranges[from].first;
}

static unsigned code_of(const unsigned char *at, size_t length) {
  if (length == 1) return at[0];
  unsigned code = at[0] & (0xffU >> (length + 1));
  for (size_t i = 1; i < length; i++) code = code << 6 | (at[i] & 0x3f);
  return code;
}

/* Length and code point of the character at `at`, also of the two that json_copy() encodes in its own way. Length
   0 for other invalid UTF-8. */
static size_t read_shown(const unsigned char *at, unsigned *code) {
  size_t length = buffer_character(at);
  if (at[0] == 0xc0 && at[1] == 0x80) length = 2;
  if (at[0] == 0xed && at[1] >= 0xa0 && at[1] < 0xc0 && (at[2] & 0xc0) == 0x80) length = 3;
  *code = length == 0 ? at[0] : code_of(at, length);
  return length;
}

void add_shown(struct buffer *to, const char *text) {
  const unsigned char *at = (const unsigned char *)text;
  size_t marks = 0;
  while (*at != 0) {
    unsigned code;
    size_t length = read_shown(at, &code);
    bool is_mark = length > 0 && is_in(MARKS, sizeof MARKS / sizeof *MARKS, code);
    bool is_hidden = is_in(UNSEEN, sizeof UNSEEN / sizeof *UNSEEN, code) || (is_mark && marks >= MOST_MARKS);
    char number[16];
    marks = is_mark ? marks + 1 : 0;
    /* Escape invalid UTF-8 too: a terminal without UTF-8 may read the byte as a C1 control. */
    if (length > 0 && !is_hidden) {
      buffer_add(to, (const char *)at, length);
    } else {
      snprintf(number, sizeof number, code < 0x100 ? "\\x%02x" : "\\u{%x}", code);
      buffer_text(to, number);
    }
    at += length == 0 ? 1 : length;
  }
}

/* One write(2) if stderr has room, because other programs write to the same terminal. A failed write is ignored:
   stderr may be closed. The terminal is restored first: a command's modes may not end lines as people read them. */
static void write_out(struct buffer *text) {
  terminal_restore();
  if (text->data != NULL && !write_all(STDERR_FILENO, text->data, text->length)) text->failed = true;
  buffer_free(text);
}

void say(const char *part, ...) {
  struct buffer line = {0};
  va_list parts;
  buffer_text(&line, "substrate: ");
  va_start(parts, part);
  for (; part != NULL; part = va_arg(parts, const char *)) add_shown(&line, part);
  va_end(parts);
  buffer_text(&line, "\n");
  write_out(&line);
}

void say_with_hint(const char *message, const char *hint) {
  struct buffer lines = {0};
  buffer_text(&lines, "substrate: ");
  add_shown(&lines, message);
  buffer_text(&lines, hint == NULL ? "\n" : "\n  ");
  if (hint != NULL) add_shown(&lines, hint);
  if (hint != NULL) buffer_text(&lines, "\n");
  write_out(&lines);
}
