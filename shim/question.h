/* Bodies of the shim's calls to the broker, as JSON. */
#ifndef SUBSTRATE_SHIM_QUESTION_H
#define SUBSTRATE_SHIM_QUESTION_H

#include "client/buffer.h"
#include "program.h"

/* Time for a person to approve; later counts as denied. */
#define APPROVAL_SECONDS 600

/* Body of POST /v1/report before a program starts: words, folder and variables. The answer is the verdict. */
struct buffer question_start(const struct program *program, const char *agent, char *const words[], bool bypass);
/* First message of GET /v1/stream for a program that must not start here: the same words, with the variables that
   `substrate exec` sends. `terminal`: the program's is shown at this process's; `input`: standard input is passed on. Failed
   for more words or variables than the broker takes. */
struct buffer question_stream(const struct program *program, const char *agent, char *const words[], bool terminal, bool input);
/* Body of POST /v1/report after a program's end. `status` as from wait(2); -1: unknown. */
struct buffer question_end(const char *agent, const char *span, int status);

#endif
