/* The walk over the host for rules with wildcards: what they match outside of what may be written is hidden. */
#define _GNU_SOURCE
#include "deny/host_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/failure.h"
#include "mount/mount_steps.h"
#include "deny/rules.h"
#include "deny/scan.h"
#include "mount/veil.h"
#include "deny/zones.h"

#define STEP "denied names"

struct hidden {
  struct hidden *next;
  char path[];
};

static const struct stage *walked;
static struct hidden *hidden;

static bool on_enter(int folder, const char *path, const struct places *places) {
  (void)folder;
  (void)places;
  return !zone_begins(path);
}

static bool on_found(const char *path, unsigned denies) {
  (void)denies;
  /* What is bound there must have a place; the rule stands among the zone's own too (zones.h). */
  if (zone_begins(path)) return false;
  struct hidden *entry = malloc(sizeof *entry + strlen(path) + 1);
  if (entry == NULL) fail_world(STEP, path, ENOMEM);
  strcpy(entry->path, path);
  entry->next = hidden;
  hidden = entry;
  if (veil_hide(walked, path) < 0) fail_world(STEP, path, errno);
  return false;
}

void names_hide(const struct stage *stage) {
  const struct places *places = rules_begin(DENY_HOST);
  if (places == NULL) return;
  const struct scan scan = {.root = stage->host, .enter = on_enter, .found = on_found};
  walked = stage;
  scan_below(&scan, "/", places);
}

void names_mask_hidden(const struct stage *stage) {
  while (hidden != NULL) {
    struct hidden *entry = hidden;
    if (mask_place(stage, entry->path) < 0) fail_world(STEP, entry->path, errno);
    hidden = entry->next;
    free(entry);
  }
}
