/* The network namespace of a world, made and owned from outside: nothing inside has a capability over it, not even one
   that it has in its own user namespace. */
#ifndef SUBSTRATE_NETWORK_NETWORK_SPACE_H
#define SUBSTRATE_NETWORK_NETWORK_SPACE_H

#include <stdbool.h>

/* Where a step of making it failed; `errno` has the rest. NULL: it is made, with `lo` up and every IPv4 address local.
   `nested` says that it took a user namespace, which whoever joins it must join first. */
const char *network_space_make(bool *nested);

/* Keeps the capabilities that changing rules and listening take, for ourselves and for what we execute, and no others. */
const char *network_space_settle(void);

#endif
