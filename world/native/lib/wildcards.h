/* Matches a name against a pattern: a star matches any bytes, or none. Pure. */
#ifndef SUBSTRATE_LIB_WILDCARDS_H
#define SUBSTRATE_LIB_WILDCARDS_H

#include <stdbool.h>

bool wildcards_match(const char *pattern, const char *text);

#endif
