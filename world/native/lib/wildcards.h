/* Patterns of names: a star stands for any bytes, none included. Pure. */
#ifndef SUBSTRATE_LIB_WILDCARDS_H
#define SUBSTRATE_LIB_WILDCARDS_H

#include <stdbool.h>

bool wildcards_match(const char *pattern, const char *text);

#endif
