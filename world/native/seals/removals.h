/* Removal and renaming of files that commands made, where a mount of this world holds the name: the seals of
   a repository and the pinned folders above. The kernel refuses to remove a mount point in the caller's own
   mount namespace, so the broker acts from the host's: there the kernel detaches the mounts in every world
   together with the name, and a moved folder takes its mounts along. PID 1 describes the call to the broker
   and answers the caller; the broker knows whether a command made the file. */
#ifndef SUBSTRATE_SEALS_REMOVALS_H
#define SUBSTRATE_SEALS_REMOVALS_H

#include <linux/seccomp.h>
#include <stdbool.h>

#include "notify/writes/record.h"

/* A removal_asker: sends REMOVING, answered by REPLACED. */
bool removal_serve(int listener, const struct seccomp_notif *notice, const struct command *command,
                   const struct removal *removal);

#endif
