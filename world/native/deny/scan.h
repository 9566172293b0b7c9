/* Searches for denied names below a folder: reads only folders where a rule can still match. */
#ifndef SUBSTRATE_DENY_SCAN_H
#define SUBSTRATE_DENY_SCAN_H

#include "deny/rules.h"

struct scan {
  int root; /* O_PATH; all paths are below */
  /* A folder about to be read, with its states. False: skip the folder and its contents. */
  bool (*enter)(int folder, const char *path, const struct rule_states *states);
  /* A denied name. `denies` holds bits of rules.h. False: skip its contents. */
  bool (*found)(const char *path, unsigned denies);
  /* A link in the place of a folder with denied names (rules_through); may be NULL. */
  void (*link)(const char *path, unsigned denies);
  uint32_t folders_max; /* with `cut`: stop after so many folders and set `*cut` */
  bool *cut;
};

/* Walks from `path`, absolute below the root. Unreadable or vanished folders are skipped. Beyond the limit of
   folders the world ends, unless `cut` is set. */
void scan_below(const struct scan *scan, const char *path, const struct rule_states *states);

#endif
