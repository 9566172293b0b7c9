/* Errors of the broker, for people and scripts. */
#ifndef SUBSTRATE_STREAM_REFUSAL_H
#define SUBSTRATE_STREAM_REFUSAL_H

#include "../client/json.h"

/* Substrate itself failed; the policy denied. */
#define EXIT_FAILED 125
#define EXIT_DENIED 126

/* Prints message and hint of an `error`; returns the exit code, as api/cli/terminal/replies.ts. */
int refusal_say(struct json error);
/* Prints that the connection ended, or that the answer is no valid one; returns the exit code. */
int refusal_no_reply(void);
int refusal_not_json(const char *text, size_t length);

#endif
