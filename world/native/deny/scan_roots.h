/* Trees to scan for denied names, and trees that a walk over the host leaves out. */
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

/* Takes a ZONE field: "watch" (the host's own files), "once" (an overlay) or "skip" (for the host's walk
   only), a NUL, an absolute path. Returns NULL or the error. */
const char *scan_roots_take(const uint8_t *data, size_t length);
/* Returns the list of roots; NULL ends the list. */
const struct scan_root *scan_roots_first(void);
bool scan_roots_any(enum scan_kind kind);
/* Returns the deepest scanned root above `path` (not SCAN_SKIP), or NULL. */
const struct scan_root *scan_root_of(const char *path);
/* True when a walk over the host must not enter exactly this folder. */
bool is_scan_root(const char *path);
/* Returns the states of these kinds at the root's own folder. NULL: no rule can match below. `denied`
   receives the bits for that folder or a folder above. */
const struct rule_states *scan_root_states(const struct scan_root *root, unsigned kinds, unsigned *denied);
/* Does the same for any folder. */
const struct rule_states *rule_states_at(const char *path, unsigned kinds, unsigned *denied);

#endif
