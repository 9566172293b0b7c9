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

void buffer_json(struct buffer *buffer, const char *text) {
  const unsigned char *at = (const unsigned char *)text;
  buffer_text(buffer, "\"");
  while (*at != 0) {
    size_t length = buffer_character(at);
    char escaped[8];
    if (length == 0) {
      buffer_text(buffer, REPLACEMENT);
      length = 1;
    } else if (*at == '"' || *at == '\\') {
      buffer_add(buffer, "\\", 1);
      buffer_add(buffer, (const char *)at, 1);
    } else if (*at < 0x20) {
      snprintf(escaped, sizeof escaped, "\\u%04x", *at);
      buffer_text(buffer, escaped);
    } else {
      buffer_add(buffer, (const char *)at, length);
    }
    at += length;
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

static const char *read_unit(const char *at, unsigned *unit) {
  *unit = 0;
  for (int i = 0; i < 4; i++) {
    const char *digits = "0123456789abcdef";
    const char *digit = at[i] == 0 ? NULL : strchr(digits, at[i] | 0x20);
    if (digit == NULL) return NULL;
    *unit = *unit << 4 | (unsigned)(digit - digits);
  }
  return at + 4;
}

static size_t write_character(char *to, unsigned code) {
  if (code < 0x80) {
    to[0] = (char)code;
    return 1;
  }
  if (code < 0x800) {
    to[0] = (char)(0xc0 | code >> 6);
    to[1] = (char)(0x80 | (code & 0x3f));
    return 2;
  }
  if (code < 0x10000) {
    to[0] = (char)(0xe0 | code >> 12);
    to[1] = (char)(0x80 | (code >> 6 & 0x3f));
    to[2] = (char)(0x80 | (code & 0x3f));
    return 3;
  }
  to[0] = (char)(0xf0 | code >> 18);
  to[1] = (char)(0x80 | (code >> 12 & 0x3f));
  to[2] = (char)(0x80 | (code >> 6 & 0x3f));
  to[3] = (char)(0x80 | (code & 0x3f));
  return 4;
}

/* Decodes one escape, from behind the backslash. NULL for an invalid escape. */
static const char *unescape(const char *at, char **to) {
  static const char FROM[] = "\"\\/bfnrt", INTO[] = "\"\\/\b\f\n\r\t";
  const char *known = *at == 0 ? NULL : strchr(FROM, *at);
  if (known != NULL) {
    *(*to)++ = INTO[known - FROM];
    return at + 1;
  }
  unsigned unit, low;
  if (*at != 'u' || (at = read_unit(at + 1, &unit)) == NULL) return NULL;
  const char *second = unit >= 0xd800 && unit < 0xdc00 && at[0] == '\\' && at[1] == 'u' ? read_unit(at + 2, &low) : NULL;
  if (second != NULL && low >= 0xdc00 && low < 0xe000) {
    unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
    at = second;
  }
  *to += write_character(*to, unit == 0 ? ' ' : unit);
  return at;
}

char *json_string(const char *json, const char *name) {
  char wanted[64];
  snprintf(wanted, sizeof wanted, "\"%s\":\"", name);
  const char *at = strstr(json, wanted);
  if (at == NULL) return NULL;
  at += strlen(wanted);
  /* The decoded value is never longer than the escaped text. */
  char *value = malloc(strlen(at) + 1), *to = value;
  if (value == NULL) return NULL;
  while (*at != 0 && *at != '"') {
    if (*at == '\\') at = unescape(at + 1, &to);
    else *to++ = *at++;
    if (at == NULL) break;
  }
  *to = 0;
  return value;
}
