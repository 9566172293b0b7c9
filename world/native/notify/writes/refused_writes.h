/* Reports a command's writes refused by a mount of this world, so that the broker's reply can say why. */
#ifndef SUBSTRATE_NOTIFY_WRITES_REFUSED_WRITES_H
#define SUBSTRATE_NOTIFY_WRITES_REFUSED_WRITES_H

#include "notify/writes/lookups.h"

struct command;

/* Reports each path and errno once; the first FRAME_MAX_REFUSED_WRITES of a command. Without memory nothing
   is reported, and the kernel still refuses. */
void refused_writes_tell(struct command *command, const struct lookup *place);
void refused_writes_end(struct command *command);

#endif
