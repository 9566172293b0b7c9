#include "notify/writes/opened.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct opened {
  struct opened *next;
  size_t length;
  char path[];
};

static struct opened *all;

const char *opened_take(const uint8_t *path, size_t length) {
  bool is_path = length >= 2 && length < PATH_MAX && memchr(path, 0, length) == NULL && path[0] == '/';
  if (!is_path || path[length - 1] == '/') return "SETUP: bad OPENED";
  struct opened *added = malloc(sizeof *added + length + 1);
  if (added == NULL) return "SETUP: no room for OPENED";
  *added = (struct opened){.next = all, .length = length};
  memcpy(added->path, path, length);
  added->path[length] = 0;
  all = added;
  return NULL;
}

bool opened_any(void) {
  return all != NULL;
}

bool opened_holds(const char *path) {
  for (const struct opened *each = all; each != NULL; each = each->next) {
    if (strncmp(path, each->path, each->length) != 0) continue;
    if (path[each->length] == 0 || path[each->length] == '/') return true;
  }
  return false;
}
