#include "lib/wildcards.h"

#include <stddef.h>

/* On a mismatch the last star takes another byte: earlier stars need not change. */
bool wildcards_match(const char *pattern, const char *text) {
  const char *star = NULL, *from = text;
  while (*text != 0) {
    if (*pattern == '*') {
      star = pattern++;
      from = text;
    } else if (*pattern == *text) {
      pattern++;
      text++;
    } else if (star != NULL) {
      pattern = star + 1;
      text = ++from;
    } else {
      return false;
    }
  }
  while (*pattern == '*') pattern++;
  return *pattern == 0;
}
