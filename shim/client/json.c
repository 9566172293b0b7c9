#include "json.h"

#include <stdlib.h>
#include <string.h>

#define MOST_LEVELS 64

static const struct json NO_VALUE = {NULL, 0};

static const char *skip_blanks(const char *at, const char *end) {
  while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')) at++;
  return at;
}

static bool is_digit(char byte) {
  return byte >= '0' && byte <= '9';
}

/* Reads four hexadecimal digits. NULL without them. */
static const char *read_unit(const char *at, const char *end, unsigned *unit) {
  *unit = 0;
  if (end - at < 4) return NULL;
  for (int i = 0; i < 4; i++, at++) {
    unsigned digit = is_digit(*at) ? (unsigned)(*at - '0') : (unsigned)((*at | 0x20) - 'a') + 10;
    if (!is_digit(*at) && (digit < 10 || digit > 15)) return NULL;
    *unit = *unit << 4 | digit;
  }
  return at;
}

/* Modified UTF-8: see json_copy(). */
static size_t encode(unsigned code, char to[4]) {
  size_t length = code == 0 ? 2 : code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  static const unsigned char FIRST[] = {0, 0, 0xc0, 0xe0, 0xf0};
  for (size_t i = length - 1; i > 0; i--) {
    to[i] = (char)(0x80 | (code & 0x3f));
    code >>= 6;
  }
  to[0] = (char)(FIRST[length] | code);
  return length;
}

/* Decodes an escape from behind the backslash. NULL for an invalid escape. */
static const char *read_escape(const char *at, const char *end, char to[4], size_t *length) {
  static const char FROM[] = "\"\\/bfnrt", INTO[] = "\"\\/\b\f\n\r\t";
  unsigned unit, low;
  if (at == end) return NULL;
  const char *known = *at == 0 ? NULL : strchr(FROM, *at);
  if (known != NULL) {
    to[0] = INTO[known - FROM];
    *length = 1;
    return at + 1;
  }
  if (*at != 'u' || (at = read_unit(at + 1, end, &unit)) == NULL) return NULL;
  const char *second = NULL;
  if (unit >= 0xd800 && unit < 0xdc00 && end - at >= 2 && at[0] == '\\' && at[1] == 'u') second = read_unit(at + 2, end, &low);
  if (second != NULL && low >= 0xdc00 && low < 0xe000) {
    unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
    at = second;
  }
  *length = encode(unit, to);
  return at;
}

/* Decodes the next character of a string, from behind the opening quote: one escape or one byte. At the
   closing quote `length` is 0. NULL for an invalid string. */
static const char *read_character(const char *at, const char *end, char to[4], size_t *length) {
  *length = 0;
  if (at == end || (unsigned char)*at < 0x20) return NULL;
  if (*at == '"') return at + 1;
  if (*at == '\\') return read_escape(at + 1, end, to, length);
  to[0] = *at;
  *length = 1;
  return at + 1;
}

static const char *skip_string(const char *at, const char *end) {
  char character[4];
  size_t length = 1;
  if (at == end || *at != '"') return NULL;
  at++;
  while (at != NULL && length > 0) at = read_character(at, end, character, &length);
  return at;
}

static const char *skip_digits(const char *at, const char *end) {
  if (at == NULL || at == end || !is_digit(*at)) return NULL;
  while (at < end && is_digit(*at)) at++;
  return at;
}

static const char *skip_number(const char *at, const char *end) {
  if (at < end && *at == '-') at++;
  at = at < end && *at == '0' ? at + 1 : skip_digits(at, end);
  if (at != NULL && at < end && *at == '.') at = skip_digits(at + 1, end);
  if (at == NULL || at == end || (*at | 0x20) != 'e') return at;
  at++;
  if (at < end && (*at == '+' || *at == '-')) at++;
  return skip_digits(at, end);
}

static const char *skip_word(const char *at, const char *end, const char *word) {
  size_t length = strlen(word);
  return (size_t)(end - at) >= length && memcmp(at, word, length) == 0 ? at + length : NULL;
}

static const char *skip_value(const char *at, const char *end, int levels);

/* Skips an object's name and the colon, to the value. */
static const char *skip_name(const char *at, const char *end) {
  at = skip_string(at, end);
  if (at == NULL) return NULL;
  at = skip_blanks(at, end);
  return at < end && *at == ':' ? skip_blanks(at + 1, end) : NULL;
}

static const char *skip_array_or_object(const char *at, const char *end, int levels) {
  bool is_object = *at == '{';
  char last = is_object ? '}' : ']';
  if (levels == 0) return NULL;
  at = skip_blanks(at + 1, end);
  if (at < end && *at == last) return at + 1;
  for (;;) {
    if (is_object) at = skip_name(at, end);
    if (at != NULL) at = skip_value(at, end, levels - 1);
    if (at == NULL) return NULL;
    at = skip_blanks(at, end);
    if (at < end && *at == last) return at + 1;
    if (at == end || *at != ',') return NULL;
    at = skip_blanks(at + 1, end);
  }
}

static const char *skip_value(const char *at, const char *end, int levels) {
  if (at == end) return NULL;
  switch (*at) {
    case '{':
    case '[': return skip_array_or_object(at, end, levels);
    case '"': return skip_string(at, end);
    case 't': return skip_word(at, end, "true");
    case 'f': return skip_word(at, end, "false");
    case 'n': return skip_word(at, end, "null");
    default: return skip_number(at, end);
  }
}

struct json json_document(const char *text, size_t length) {
  if (text == NULL) return NO_VALUE;
  const char *end = text + length, *begin = skip_blanks(text, end);
  const char *behind = skip_value(begin, end, MOST_LEVELS);
  if (behind == NULL || skip_blanks(behind, end) != end) return NO_VALUE;
  return (struct json){begin, (size_t)(behind - begin)};
}

static bool begins(struct json value, char first) {
  return value.text != NULL && value.text[0] == first;
}

/* The value at `at`, inside a checked document. */
static struct json value_at(const char *at, const char *end) {
  const char *behind = at == NULL ? NULL : skip_value(at, end, MOST_LEVELS);
  return behind == NULL ? NO_VALUE : (struct json){at, (size_t)(behind - at)};
}

/* Skips blanks and a comma to the next name or item; NULL at the closing bracket. */
static const char *next_of(const char *at, const char *end) {
  at = skip_blanks(at, end);
  if (at < end && *at == ',') at = skip_blanks(at + 1, end);
  return at < end && *at != ']' && *at != '}' ? at : NULL;
}

struct json json_member(struct json object, const char *name) {
  struct json found = NO_VALUE;
  if (!begins(object, '{')) return found;
  const char *end = object.text + object.length, *at = next_of(object.text + 1, end);
  while (at != NULL) {
    struct json key = value_at(at, end), value = value_at(skip_name(at, end), end);
    if (value.text == NULL) break;
    if (json_is(key, name)) found = value;
    at = next_of(value.text + value.length, end);
  }
  return found;
}

struct json json_item(struct json array, struct json before) {
  if (!begins(array, '[')) return NO_VALUE;
  const char *end = array.text + array.length;
  const char *at = next_of(before.text == NULL ? array.text + 1 : before.text + before.length, end);
  return at == NULL ? NO_VALUE : value_at(at, end);
}

struct json json_name(struct json object, struct json before, struct json *value) {
  if (!begins(object, '{')) return NO_VALUE;
  const char *end = object.text + object.length;
  const char *behind = before.text == NULL ? object.text + 1 : value->text + value->length;
  const char *at = next_of(behind, end);
  if (at == NULL) return NO_VALUE;
  *value = value_at(skip_name(at, end), end);
  return value->text == NULL ? NO_VALUE : value_at(at, end);
}

bool json_integer(struct json value, long least, long most, long *number) {
  char digits[24];
  size_t sign = begins(value, '-') ? 1 : 0;
  if (value.text == NULL || value.length >= sizeof digits) return false;
  memcpy(digits, value.text, value.length);
  digits[value.length] = 0;
  if (value.length == sign || strspn(digits + sign, "0123456789") != value.length - sign) return false;
  *number = strtol(digits, NULL, 10);
  return *number >= least && *number <= most;
}

bool json_is_true(struct json value) {
  return value.length == 4 && memcmp(value.text, "true", 4) == 0;
}

bool json_is(struct json string, const char *text) {
  char character[4];
  size_t length = 1;
  if (!begins(string, '"')) return false;
  const char *at = string.text + 1, *end = string.text + string.length;
  for (; length > 0; text += length) {
    at = read_character(at, end, character, &length);
    if (at == NULL || strncmp(text, character, length) != 0) return false;
  }
  return *text == 0;
}

char *json_copy(struct json string) {
  size_t length = 1;
  if (!begins(string, '"')) return NULL;
  /* A decoded character is never longer than the escape: two bytes for the six of U+0000. */
  char *copy = malloc(string.length + 4), *to = copy;
  const char *at = string.text + 1, *end = string.text + string.length;
  if (copy == NULL) return NULL;
  while (at != NULL && length > 0) {
    at = read_character(at, end, to, &length);
    to += length;
  }
  *to = 0;
  return copy;
}
