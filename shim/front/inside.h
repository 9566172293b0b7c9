/* Whether this process is a command in a world. */
#ifndef SUBSTRATE_FRONT_INSIDE_H
#define SUBSTRATE_FRONT_INSIDE_H

#include <stdbool.h>

/* By the kernel's word alone: a variable would let a command on the host say it too, and run there. False in a world that
   has a broker of its own. */
bool inside_world(void);

#endif
