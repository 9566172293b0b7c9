#include "notify/writes/opened.h"

#include <stdlib.h>
#include <string.h>

struct opened {
  struct opened *next;
  size_t length;
  char path[];
};

static struct opened *all;

bool opened_add(const uint8_t *path, size_t length) {
  struct opened *added = malloc(sizeof *added + length + 1);
  if (added == NULL) return false;
  *added = (struct opened){.next = all, .length = length};
  memcpy(added->path, path, length);
  added->path[length] = 0;
  all = added;
  return true;
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
