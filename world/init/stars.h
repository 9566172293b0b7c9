/* Patterns of names: a star stands for any bytes, none included. Pure. */
#ifndef SUBSTRATE_STARS_H
#define SUBSTRATE_STARS_H

#include <stdbool.h>

bool stars_match(const char *pattern, const char *text);

#endif
