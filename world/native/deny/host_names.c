/* Walks the host for rules with wildcards and hides their matches outside the writable trees. */
#define _GNU_SOURCE
#include "deny/host_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "deny/rules.h"
#include "deny/scan.h"
#include "deny/scan_roots.h"
#include "lib/failure.h"
#include "mount/host_overlays.h"
#include "mount/mount_steps.h"

#define STEP "denied names"

struct hidden {
  struct hidden *next;
  char path[];
};

static const struct stage *walked;
static struct hidden *hidden;

static bool on_enter(int folder, const char *path, const struct rule_states *states) {
  (void)folder;
  (void)states;
  return !is_scan_root(path);
}

static bool on_found(const char *path, unsigned denies) {
  (void)denies;
  /* A bind mount needs its mount point; the root's own rules include this rule (scan_roots.h). */
  if (is_scan_root(path)) return false;
  struct hidden *entry = malloc(sizeof *entry + strlen(path) + 1);
  if (entry == NULL) fail_world(STEP, path, ENOMEM);
  strcpy(entry->path, path);
  entry->next = hidden;
  hidden = entry;
  if (host_overlay_hide(walked, path) < 0) fail_world(STEP, path, errno);
  return false;
}

void names_hide(const struct stage *stage) {
  const struct rule_states *states = rules_begin(DENY_HOST);
  if (states == NULL) return;
  const struct scan scan = {.root = stage->host, .enter = on_enter, .found = on_found};
  walked = stage;
  scan_below(&scan, "/", states);
}

void names_mask_hidden(const struct stage *stage) {
  while (hidden != NULL) {
    struct hidden *entry = hidden;
    if (mask_place(stage, entry->path) < 0) fail_world(STEP, entry->path, errno);
    hidden = entry->next;
    free(entry);
  }
}
