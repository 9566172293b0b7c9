/* Bodies of POST /v1/check and of the first message on /v1/stream, as JSON. */
#ifndef SUBSTRATE_FRONT_REQUEST_H
#define SUBSTRATE_FRONT_REQUEST_H

#include "../client/buffer.h"
#include "caller.h"
#include "options.h"

/* The broker takes requests of 10 MiB at most, and says so in words that Node prints. */
#define MOST_REQUEST (8UL << 20)

/* Asks to be told of questions. Longest wait that a request may ask for; the policy's `approval.timeout_secs` ends questions
   sooner (api/cli/questions/ask-here.ts). */
#define QUESTIONS ",\"approval_wait_ms\":86400000,\"questions\":true"

/* Adds the fields that api/cli/commands/command-body.ts sends, without the closing brace: the caller adds more.
   False for a request that Node must judge or shorten: very long or very many variables, a wrong --env. */
bool request_add(struct buffer *body, const struct caller *caller, const struct options *options);

#endif
