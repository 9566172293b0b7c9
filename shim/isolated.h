/* A program that the policy isolates: the broker runs it in a world, and this process is its client. */
#ifndef SUBSTRATE_SHIM_ISOLATED_H
#define SUBSTRATE_SHIM_ISOLATED_H

#include "program.h"

/* Passes the standard descriptors, signals and, where all three are a terminal, the terminal on to the program. Returns the
   exit code; negative where nothing has run and nothing was said. */
int isolated_run(const struct program *program, const char *agent, const char *socket, char *const words[]);

#endif
