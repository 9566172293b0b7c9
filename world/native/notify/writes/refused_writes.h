/* Writes of a command that a mount of this world refuses: told to the broker, so that its reply can say why. */
#ifndef SUBSTRATE_NOTIFY_WRITES_REFUSED_WRITES_H
#define SUBSTRATE_NOTIFY_WRITES_REFUSED_WRITES_H

#include "notify/writes/lookups.h"

struct command;

/* Once for each path and errno; the first FRAME_MAX_REFUSED_WRITES of a command. Without memory nothing is told: the refusal is the kernel's. */
void refused_writes_tell(struct command *command, const struct lookup *place);
void refused_writes_end(struct command *command);

#endif
