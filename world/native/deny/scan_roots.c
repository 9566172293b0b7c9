#define _GNU_SOURCE
#include "deny/scan_roots.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib/failure.h"
#include "mount/targets.h"

static struct scan_root *roots;

static const struct {
  const char *word;
  enum scan_kind kind;
} KINDS[] = {{"watch", SCAN_WATCH}, {"once", SCAN_ONCE}, {"skip", SCAN_SKIP}};

const char *scan_roots_take(const uint8_t *data, size_t length) {
  const char *text = (const char *)data;
  size_t word = strnlen(text, length);
  if (word == length || length - word - 1 >= PATH_MAX) return "ZONE: no path";
  size_t size = length - word - 1;
  if (memchr(text + word + 1, 0, size) != NULL) return "ZONE: NUL in the path";
  for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++) {
    if (strcmp(KINDS[i].word, text) != 0) continue;
    struct scan_root *root = calloc(1, sizeof *root + size + 1);
    if (root == NULL) fail_world("zone", "", ENOMEM);
    memcpy(root->path, text + word + 1, size);
    if (!path_is_plain(root->path)) return "ZONE: not an absolute path";
    root->kind = KINDS[i].kind;
    root->next = roots;
    roots = root;
    return NULL;
  }
  return "ZONE: unknown kind";
}

const struct scan_root *scan_roots_first(void) {
  return roots;
}

bool scan_roots_any(enum scan_kind kind) {
  for (const struct scan_root *root = roots; root != NULL; root = root->next) {
    if (root->kind == kind) return true;
  }
  return false;
}

bool is_scan_root(const char *path) {
  for (const struct scan_root *root = roots; root != NULL; root = root->next) {
    if (strcmp(root->path, path) == 0) return true;
  }
  return false;
}

const struct scan_root *scan_root_of(const char *path) {
  const struct scan_root *deepest = NULL;
  for (const struct scan_root *root = roots; root != NULL; root = root->next) {
    size_t length = strlen(root->path);
    if (root->kind == SCAN_SKIP || strncmp(path, root->path, length) != 0) continue;
    if (path[length] != '/' && path[length] != 0) continue;
    if (deepest == NULL || length > strlen(deepest->path)) deepest = root;
  }
  return deepest;
}

const struct rule_states *scan_root_states(const struct scan_root *root, unsigned kinds, unsigned *denied) {
  return rule_states_at(root->path, kinds, denied);
}

const struct rule_states *rule_states_at(const char *path, unsigned kinds, unsigned *denied) {
  char name[NAME_MAX + 1];
  unsigned matched;
  const struct rule_states *states = rules_begin(kinds);
  *denied = 0;
  for (const char *part = path + 1; states != NULL && *part != 0;) {
    size_t length = strcspn(part, "/");
    if (length > NAME_MAX) return NULL;
    memcpy(name, part, length);
    name[length] = 0;
    states = rules_step(states, name, &matched);
    *denied |= matched;
    part += length + strspn(part + length, "/");
  }
  return states;
}
