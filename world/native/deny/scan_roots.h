/* The trees that the guard looks through, and those that a walk over the host leaves out. */
#ifndef SUBSTRATE_DENY_SCAN_ROOTS_H
#define SUBSTRATE_DENY_SCAN_ROOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "deny/rules.h"

enum scan_kind { SCAN_WATCH, SCAN_ONCE, SCAN_SKIP };

struct scan_root {
  struct scan_root *next;
  enum scan_kind kind;
  char path[];
};

/* Takes a ZONE field: "watch" (the host's own files), "once" (an overlay) or "skip" (for the host's walk only),
   a NUL, an absolute path. NULL, or what is wrong. */
const char *scan_roots_take(const uint8_t *data, size_t length);
/* NULL ends. */
const struct scan_root *scan_roots_first(void);
bool scan_roots_any(enum scan_kind kind);
/* The deepest watched or looked-at root that holds `path`, or NULL. */
const struct scan_root *scan_root_of(const char *path);
/* Whether a walk over the host must not go into exactly this folder. */
bool is_scan_root(const char *path);
/* Where the rules of these kinds stand at the root's own folder. NULL: none can match below it. `denied` is what they
   say of that folder itself, or of one above it. */
const struct rule_states *scan_root_states(const struct scan_root *root, unsigned kinds, unsigned *denied);
/* The same of any folder. */
const struct rule_states *rule_states_at(const char *path, unsigned kinds, unsigned *denied);

#endif
