/* Removing and moving what commands made, where a mount of this world keeps the name: the seals of a repository and the folders above
   them. The kernel removes no mount point of the world that asks, so the broker does it from the host's mount namespace: there the
   kernel takes the mounts off in the same moment in which the name goes, in every world, and a moved folder takes them along. PID 1
   says what the call is about and answers it; whether a command made what stands there the broker knows. */
#ifndef SUBSTRATE_SEALS_REMOVALS_H
#define SUBSTRATE_SEALS_REMOVALS_H

#include <linux/seccomp.h>
#include <stdbool.h>

#include "notify/writes/record.h"

/* A removal_asker, by REMOVING; REPLACED is the answer. */
bool removal_serve(int listener, const struct seccomp_notif *notice, const struct command *command,
                   const struct removal *removal);

#endif
