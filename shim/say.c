#include "say.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "buffer.h"

/* A range of code points, both ends included. */
struct range {
  unsigned first, last;
};

/* Unicode 16: control and format characters, separators except the blank, and letters drawn as nothing. Same
   as UNSEEN in api/cli/terminal/terminal.ts. U+0080 to U+009F are the C1 controls (ECMA-48); U+009B begins a
   sequence as ESC [ does. */
static const struct range UNSEEN[] = {
    {0x00, 0x1f},       {0x7f, 0xa0},       {0xad, 0xad},       {0x34f, 0x34f},     {0x600, 0x605},     {0x61c, 0x61c},
    {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x890, 0x891},     {0x8e2, 0x8e2},     {0x115f, 0x1160},   {0x1680, 0x1680},
    {0x180e, 0x180e},   {0x2000, 0x200f},   {0x2028, 0x202f},   {0x205f, 0x206f},   {0x2800, 0x2800},   {0x3000, 0x3000},
    {0x3164, 0x3164},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},   {0xfff9, 0xfffb},   {0x110bd, 0x110bd}, {0x110cd, 0x110cd},
    {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0001, 0xe0001}, {0xe0020, 0xe007f},
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

static void add_shown(struct buffer *line, const char *text) {
  const unsigned char *at = (const unsigned char *)text;
  while (*at != 0) {
    size_t length = buffer_character(at);
    /* Escape invalid UTF-8 too: a terminal without UTF-8 may read the byte as a C1 control. */
    unsigned code = length == 0 ? *at : code_of(at, length);
    char number[16];
    if (length > 0 && !is_unseen(code)) {
      buffer_add(line, (const char *)at, length);
    } else {
      snprintf(number, sizeof number, code < 0x100 ? "\\x%02x" : "\\u{%x}", code);
      buffer_text(line, number);
    }
    at += length == 0 ? 1 : length;
  }
}

void say(const char *part, ...) {
  struct buffer line = {0};
  va_list parts;
  buffer_text(&line, "substrate: ");
  va_start(parts, part);
  for (; part != NULL; part = va_arg(parts, const char *)) add_shown(&line, part);
  va_end(parts);
  buffer_text(&line, "\n");
  /* One write(2), because other programs write to the same terminal. A failed write is ignored: stderr may be
     closed. */
  if (line.data != NULL && write(STDERR_FILENO, line.data, line.length) < 0) line.failed = true;
  buffer_free(&line);
}
