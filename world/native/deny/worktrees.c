#define _GNU_SOURCE
#include "deny/worktrees.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "deny/denials.h"

static const char WORKTREES[] = ".git/worktrees/";

static bool is_needed(const char *within) {
  static const char *const files[] = {"/HEAD", "/gitdir", "/index", "/logs/HEAD"};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    if (strcmp(within, files[i]) == 0) return true;
  }
  return false;
}

bool worktree_needs(const char *path) {
  char seal[PATH_MAX];
  const char *record = strstr(path, WORKTREES);
  const char *within = record == NULL ? NULL : strchr(record + strlen(WORKTREES), '/');
  if (within == NULL || !is_needed(within)) return false;
  int length = snprintf(seal, sizeof seal, "%.*s/commondir", (int)(within - path), path);
  return length < (int)sizeof seal && denial_known(seal) && denial_holds(seal);
}
