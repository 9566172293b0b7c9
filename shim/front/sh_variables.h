/* Variables that make and npm set for their commands. */
#ifndef SUBSTRATE_FRONT_SH_VARIABLES_H
#define SUBSTRATE_FRONT_SH_VARIABLES_H

#include <stddef.h>

/* Values for --env: variables of make and npm, variables that the Makefile exports, and the names in SUBSTRATE_SH_ENV. The rest
   of the environment may hold a person's credentials. NULL without memory. */
const char **sh_variables(size_t *count);

#endif
