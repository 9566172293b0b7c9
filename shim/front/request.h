/* Bodies of POST /v1/check and of the first message on /v1/stream, as JSON. */
#ifndef SUBSTRATE_FRONT_REQUEST_H
#define SUBSTRATE_FRONT_REQUEST_H

#include "../client/buffer.h"
#include "caller.h"
#include "options.h"

/* Adds the fields that api/cli/commands/command-body.ts sends, without the closing brace: the caller adds more.
   False for a request that Node must judge or shorten: very long or very many variables, a wrong --env. */
bool request_add(struct buffer *body, const struct caller *caller, const struct options *options);

#endif
