/* `substrate run` and `substrate attach`. */
#ifndef SUBSTRATE_FRONT_RUN_H
#define SUBSTRATE_FRONT_RUN_H

#include "options.h"

/* Runs a program with this terminal as its own; without a terminal, with pipes. Returns the exit code, or TO_NODE. */
int run_run(const struct options *options);
/* Takes a detached command up again. Returns the exit code, or TO_NODE. */
int attach_run(const struct options *options);

#endif
