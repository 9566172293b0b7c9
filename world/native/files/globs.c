#include "files/globs.h"

#include <stddef.h>
#include <string.h>

/* Calls of `match` for one path: a pattern of many stars takes exponential time, and counts as matching nothing then. */
#define STEPS_MAX 100000

/* Matches one character against `[…]`; NULL: no closing bracket, so the bracket is a character. */
static const char *match_set(const char *pattern, char character, bool *matches) {
  const char *at = pattern + 1;
  bool inverted = *at == '!' || *at == '^', found = false;
  if (inverted) at++;
  for (const char *first = at; *at != 0 && (*at != ']' || at == first); at++) {
    if (*at == '\\' && at[1] != 0) at++;
    char low = *at, high = low;
    if (at[1] == '-' && at[2] != 0 && at[2] != ']') {
      high = at[2];
      at += 2;
    }
    if (character >= low && character <= high) found = true;
  }
  if (*at != ']') return NULL;
  *matches = found != inverted && character != '/';
  return at + 1;
}

static bool match(const char *pattern, const char *text, const char *start, int *steps) {
  for (;; pattern++, text++) {
    if (--*steps < 0) return false;
    bool at_name = text == start || text[-1] == '/';
    if (at_name && strncmp(pattern, "**/", 3) == 0) {
      for (const char *rest = text;; rest++) {
        if (match(pattern + 3, rest, start, steps)) return true;
        rest = strchr(rest, '/');
        if (rest == NULL || *steps < 0) return false;
      }
    }
    if (at_name && strcmp(pattern, "**") == 0) return *text != 0;
    if (*pattern == '*') {
      while (pattern[1] == '*') pattern++;
      for (const char *rest = text;; rest++) {
        if (match(pattern + 1, rest, start, steps)) return true;
        if (*rest == 0 || *rest == '/' || *steps < 0) return false;
      }
    }
    if (*pattern == 0) return *text == 0;
    if (*text == 0) return false;
    if (*pattern == '?') {
      if (*text == '/') return false;
      continue;
    }
    if (*pattern == '[') {
      bool matches;
      const char *after = match_set(pattern, *text, &matches);
      if (after != NULL) {
        if (!matches) return false;
        pattern = after - 1;
        continue;
      }
    }
    if (*pattern == '\\' && pattern[1] != 0) pattern++;
    if (*pattern != *text) return false;
  }
}

bool glob_matches(const char *pattern, const char *path) {
  int steps = STEPS_MAX;
  return match(pattern, path, path, &steps);
}
