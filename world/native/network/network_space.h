/* The network namespace of a world, made and owned from outside: no process inside has a capability over the
   network, not even through the world's own user namespace. */
#ifndef SUBSTRATE_NETWORK_NETWORK_SPACE_H
#define SUBSTRATE_NETWORK_NETWORK_SPACE_H

#include <stdbool.h>

/* Makes the namespace, with `lo` up and every IPv4 address local. Returns NULL, or the failed step with
   errno. `nested`: a user namespace was needed, which joining processes must join first. */
const char *network_space_make(bool *nested);

/* Keeps only the capabilities for changing rules and listening, also for executed programs. */
const char *network_space_settle(void);

#endif
