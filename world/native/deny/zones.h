/* The trees that the guard looks through, and those that a walk over the host leaves out. */
#ifndef SUBSTRATE_DENY_ZONES_H
#define SUBSTRATE_DENY_ZONES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "deny/rules.h"

enum zone_kind { ZONE_WATCH, ZONE_ONCE, ZONE_SKIP };

struct zone {
  struct zone *next;
  enum zone_kind kind;
  char path[];
};

/* Takes a ZONE field: "watch" (the host's own files), "once" (an overlay) or "skip" (for the host's walk only),
   a NUL, an absolute path. NULL, or what is wrong. */
const char *zones_take(const uint8_t *data, size_t length);
/* NULL ends. */
const struct zone *zones_first(void);
bool zones_any(enum zone_kind kind);
/* The deepest watched or looked-at zone that holds `path`, or NULL. */
const struct zone *zone_of(const char *path);
/* Whether a walk over the host must not go into exactly this folder. */
bool zone_begins(const char *path);
/* Where the rules of these kinds stand at the zone's own folder. NULL: none can match below it. `denied` is what they
   say of that folder itself, or of one above it. */
const struct places *zone_places(const struct zone *zone, unsigned kinds, unsigned *denied);
/* The same of any folder. */
const struct places *places_at(const char *path, unsigned kinds, unsigned *denied);

#endif
