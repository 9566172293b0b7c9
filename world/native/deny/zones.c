#define _GNU_SOURCE
#include "deny/zones.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib/failure.h"
#include "mount/targets.h"

static struct zone *zones;

static const struct {
  const char *word;
  enum zone_kind kind;
} KINDS[] = {{"watch", ZONE_WATCH}, {"once", ZONE_ONCE}, {"skip", ZONE_SKIP}};

const char *zones_take(const uint8_t *data, size_t length) {
  const char *text = (const char *)data;
  size_t word = strnlen(text, length);
  if (word == length || length - word - 1 >= PATH_MAX) return "ZONE: no path";
  size_t size = length - word - 1;
  if (memchr(text + word + 1, 0, size) != NULL) return "ZONE: NUL in the path";
  for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++) {
    if (strcmp(KINDS[i].word, text) != 0) continue;
    struct zone *zone = calloc(1, sizeof *zone + size + 1);
    if (zone == NULL) fail_world("zone", "", ENOMEM);
    memcpy(zone->path, text + word + 1, size);
    if (!path_is_plain(zone->path)) return "ZONE: not an absolute path";
    zone->kind = KINDS[i].kind;
    zone->next = zones;
    zones = zone;
    return NULL;
  }
  return "ZONE: unknown kind";
}

const struct zone *zones_first(void) {
  return zones;
}

bool zones_any(enum zone_kind kind) {
  for (const struct zone *zone = zones; zone != NULL; zone = zone->next) {
    if (zone->kind == kind) return true;
  }
  return false;
}

bool zone_begins(const char *path) {
  for (const struct zone *zone = zones; zone != NULL; zone = zone->next) {
    if (strcmp(zone->path, path) == 0) return true;
  }
  return false;
}

const struct zone *zone_of(const char *path) {
  const struct zone *deepest = NULL;
  for (const struct zone *zone = zones; zone != NULL; zone = zone->next) {
    size_t length = strlen(zone->path);
    if (zone->kind == ZONE_SKIP || strncmp(path, zone->path, length) != 0) continue;
    if (path[length] != '/' && path[length] != 0) continue;
    if (deepest == NULL || length > strlen(deepest->path)) deepest = zone;
  }
  return deepest;
}

const struct places *zone_places(const struct zone *zone, unsigned kinds, unsigned *denied) {
  return places_at(zone->path, kinds, denied);
}

const struct places *places_at(const char *path, unsigned kinds, unsigned *denied) {
  char name[NAME_MAX + 1];
  unsigned matched;
  const struct places *places = rules_begin(kinds);
  *denied = 0;
  for (const char *part = path + 1; places != NULL && *part != 0;) {
    size_t length = strcspn(part, "/");
    if (length > NAME_MAX) return NULL;
    memcpy(name, part, length);
    name[length] = 0;
    places = rules_step(places, name, &matched);
    *denied |= matched;
    part += length + strspn(part + length, "/");
  }
  return places;
}
