/* `substrate check`. */
#ifndef SUBSTRATE_FRONT_CHECK_H
#define SUBSTRATE_FRONT_CHECK_H

#include "options.h"

/* Prints the verdict on a command. Returns the exit code, or TO_NODE. */
int check_run(const struct options *options);

#endif
