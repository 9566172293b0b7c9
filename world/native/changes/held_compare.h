#ifndef HELD_COMPARE_H
#define HELD_COMPARE_H

#include <stddef.h>

#include "changes/held_marks.h"
#include "changes/held_paths.h"

/* Writes the letters of held_scan.h for an entry that is above in `upper` and, if it is, below in `lower`. */
void flags_of(char *flags, size_t room, int upper, int lower, const char *name, const struct sight *above,
              const struct sight *below, const struct marks *marks);

#endif
