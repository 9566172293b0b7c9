/* EXEC: from a frame to a leader's job. */
#ifndef SUBSTRATE_RUN_EXECUTE_H
#define SUBSTRATE_RUN_EXECUTE_H

#include <stdbool.h>

#include "lib/channel.h"

/* True: the frame is served (the command runs, or EXEC_FAILED was sent). False: no leader is ready; a leader
   was requested, call again with the same frame. */
bool execute_begin(const struct frame *frame);
/* Answers the waiting frame with EXEC_FAILED. */
void execute_abandon(const struct frame *frame, const char *step, int error);

#endif
