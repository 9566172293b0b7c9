/* `substrate exec`. */
#ifndef SUBSTRATE_FRONT_EXEC_H
#define SUBSTRATE_FRONT_EXEC_H

#include "options.h"

/* Runs a command through the broker. Returns the exit code, or TO_NODE. */
int exec_run(const struct options *options);

#endif
