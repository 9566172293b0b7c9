#include "buffer.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST 4096
#define REPLACEMENT "\xef\xbf\xbd"

void buffer_add(struct buffer *buffer, const char *bytes, size_t length) {
  if (buffer->failed) return;
  if (buffer->length + length + 1 > buffer->capacity) {
    size_t capacity = buffer->capacity == 0 ? FIRST : buffer->capacity;
    while (capacity < buffer->length + length + 1) capacity *= 2;
    char *data = realloc(buffer->data, capacity);
    if (data == NULL) {
      buffer->failed = true;
      return;
    }
    buffer->data = data;
    buffer->capacity = capacity;
  }
  memcpy(buffer->data + buffer->length, bytes, length);
  buffer->length += length;
  buffer->data[buffer->length] = 0;
}

void buffer_text(struct buffer *buffer, const char *text) {
  buffer_add(buffer, text, strlen(text));
}

size_t buffer_character(const unsigned char *at) {
  size_t length = at[0] < 0x80 ? 1 : at[0] >= 0xc2 && at[0] < 0xe0 ? 2 : at[0] >= 0xe0 && at[0] < 0xf0 ? 3 : at[0] >= 0xf0 && at[0] < 0xf5 ? 4 : 0;
  for (size_t i = 1; i < length; i++) {
    if ((at[i] & 0xc0) != 0x80) return 0;
  }
  if (at[0] == 0xe0 && at[1] < 0xa0) return 0;
  if (at[0] == 0xed && at[1] > 0x9f) return 0;
  if (at[0] == 0xf0 && at[1] < 0x90) return 0;
  if (at[0] == 0xf4 && at[1] > 0x8f) return 0;
  return length;
}

bool buffer_is_text(const char *text) {
  const unsigned char *at = (const unsigned char *)text;
  while (*at != 0) {
    size_t length = buffer_character(at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

/* Length of invalid UTF-8 that a decoder replaces by one U+FFFD: the longest beginning of a character, else one
   byte ("U+FFFD Substitution of Maximal Subparts", Unicode 16, 3.9). */
static size_t broken_length(const unsigned char *at) {
  static const unsigned char SECOND[][3] = {{0xe0, 0xa0, 0xbf}, {0xed, 0x80, 0x9f}, {0xf0, 0x90, 0xbf}, {0xf4, 0x80, 0x8f}};
  unsigned char least = 0x80, most = 0xbf;
  size_t whole = at[0] >= 0xf0 && at[0] < 0xf5 ? 4 : at[0] >= 0xe0 && at[0] < 0xf0 ? 3 : 1;
  for (size_t i = 0; i < sizeof SECOND / sizeof *SECOND; i++) {
    if (at[0] == SECOND[i][0]) least = SECOND[i][1], most = SECOND[i][2];
  }
  if (whole == 1 || at[1] < least || at[1] > most) return 1;
  return whole == 4 && (at[2] & 0xc0) == 0x80 ? 3 : 2;
}

/* Length of the text's beginning that stands in a JSON string as is. */
static size_t plain_length(const unsigned char *at) {
  size_t plain = 0;
  for (;;) {
    unsigned char byte = at[plain];
    size_t length = byte < 0x80 ? 1 : buffer_character(at + plain);
    if (byte < 0x20 || byte == '"' || byte == '\\' || length == 0) return plain;
    plain += length;
  }
}

void buffer_json(struct buffer *buffer, const char *text) {
  const unsigned char *at = (const unsigned char *)text;
  buffer_text(buffer, "\"");
  for (;;) {
    size_t plain = plain_length(at);
    char escaped[8];
    buffer_add(buffer, (const char *)at, plain);
    at += plain;
    if (*at == 0) break;
    if (*at >= 0x80) {
      buffer_text(buffer, REPLACEMENT);
      at += broken_length(at);
      continue;
    }
    snprintf(escaped, sizeof escaped, *at < 0x20 ? "\\u%04x" : "\\%c", *at);
    buffer_text(buffer, escaped);
    at++;
  }
  buffer_text(buffer, "\"");
}

void buffer_field(struct buffer *buffer, const char *name, const char *value) {
  if (buffer->length > 0 && buffer->data[buffer->length - 1] != '{') buffer_text(buffer, ",");
  buffer_json(buffer, name);
  buffer_text(buffer, ":");
  buffer_json(buffer, value);
}

void buffer_free(struct buffer *buffer) {
  free(buffer->data);
  *buffer = (struct buffer){0};
}
