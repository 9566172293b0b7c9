#include "say.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "buffer.h"
#include "descriptors.h"
#include "terminal.h"

/* A range of code points, both ends included. */
struct range {
  unsigned first, last;
};

/* Unicode 16: control and format characters, lone surrogates, separators except the blank, and letters drawn as
   nothing. Same as UNSEEN in api/cli/terminal/terminal.ts. U+0080 to U+009F are the C1 controls (ECMA-48); U+009B
   begins a sequence as ESC [ does. */
static const struct range UNSEEN[] = {
    {0x00, 0x1f},       {0x7f, 0xa0},       {0xad, 0xad},       {0x34f, 0x34f},     {0x600, 0x605},     {0x61c, 0x61c},
    {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x890, 0x891},     {0x8e2, 0x8e2},     {0x115f, 0x1160},   {0x1680, 0x1680},
    {0x180e, 0x180e},   {0x2000, 0x200f},   {0x2028, 0x202f},   {0x205f, 0x206f},   {0x2800, 0x2800},   {0x3000, 0x3000},
    {0x3164, 0x3164},   {0xd800, 0xdfff},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},   {0xfff9, 0xfffb},   {0x110bd, 0x110bd},
    {0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0001, 0xe0001}, {0xe0020, 0xe007f},
};

static int is_unseen(unsigned code) {
  for (size_t i = 0; i < sizeof UNSEEN / sizeof *UNSEEN; i++) {
    if (code >= UNSEEN[i].first && code <= UNSEEN[i].last) return 1;
  }
  return 0;
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
  while (*at != 0) {
    unsigned code;
    size_t length = read_shown(at, &code);
    char number[16];
    /* Escape invalid UTF-8 too: a terminal without UTF-8 may read the byte as a C1 control. */
    if (length > 0 && !is_unseen(code)) {
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
