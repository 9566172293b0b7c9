/* The files that a tool of an agent opens. */
#ifndef SUBSTRATE_FRONT_FILES_H
#define SUBSTRATE_FRONT_FILES_H

#include "../client/buffer.h"
#include "agents.h"

/* Adds the field `files` of POST /v1/check. Blocks for a tool's input without a path. */
void files_add(struct buffer *body, const struct call *call);

#endif
