/* Looks for denied names below a folder: reads only the folders that a rule can still match in. */
#ifndef SUBSTRATE_DENY_SCAN_H
#define SUBSTRATE_DENY_SCAN_H

#include "deny/rules.h"

struct scan {
  int root; /* O_PATH of what all paths are below */
  /* A folder that is about to be read, and what stands there. False: leave it, and what is below, alone. */
  bool (*enter)(int folder, const char *path, const struct rule_states *states);
  /* A denied name. `denies` holds bits of rules.h. False: leave what is below it alone. */
  bool (*found)(const char *path, unsigned denies);
  /* A link in the place of a folder of denied names (rules_through); NULL: nobody asks. */
  void (*link)(const char *path, unsigned denies);
  uint32_t folders_max; /* with `cut`: the walk goes into no more, and says so there */
  bool *cut;
};

/* `path` is absolute below the root. What vanishes meanwhile, or cannot be read, is no error. Ends the
   world when there are more folders than it can bear, unless it may be cut. */
void scan_below(const struct scan *scan, const char *path, const struct rule_states *states);

#endif
