/* The caller of a command: agent, folder, and the socket to call. */
#ifndef SUBSTRATE_FRONT_CALLER_H
#define SUBSTRATE_FRONT_CALLER_H

#include <limits.h>

#include "options.h"

struct caller {
  const char *agent;
  char cwd[PATH_MAX];
  char socket[PATH_MAX];
};

/* Finds out who calls, as api/cli/commands/command-body.ts. False where only Node can tell: the folder is gone,
   the home is no plain absolute path, or `--agent` may be misspelt. */
bool caller_read(struct caller *caller, const struct options *options);

#endif
