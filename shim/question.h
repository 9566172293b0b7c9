/* Bodies of the shim's reports to the broker, as JSON. */
#ifndef SUBSTRATE_SHIM_QUESTION_H
#define SUBSTRATE_SHIM_QUESTION_H

#include "client/buffer.h"
#include "program.h"

/* Time for a person to approve; later counts as denied. */
#define APPROVAL_SECONDS 600

/* Body of POST /v1/report before a program starts: words, folder and variables. The answer is the verdict. */
struct buffer question_start(const struct program *program, const char *agent, char *const words[], bool bypass);
/* Body of POST /v1/report after a program's end. `status` as from wait(2); -1: unknown. */
struct buffer question_end(const char *agent, const char *span, int status);

#endif
