/* What the broker is asked and told, as JSON. */
#ifndef SUBSTRATE_SHIM_QUESTION_H
#define SUBSTRATE_SHIM_QUESTION_H

#include "buffer.h"
#include "program.h"

/* For how long a person may think; then it is a no. */
#define APPROVAL_SECONDS 600

/* Body of POST /v1/report before a program starts: its words, folder and variables. The answer decides. */
struct buffer question_start(const struct program *program, const char *agent, char *const words[], bool bypass);
/* The same for its end, by the status of wait(2); -1: it is not known. */
struct buffer question_end(const char *agent, const char *span, int status);

#endif
