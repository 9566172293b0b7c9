/* EXEC: from a frame to a job in a leader's hands. */
#ifndef SUBSTRATE_RUN_EXECUTE_H
#define SUBSTRATE_RUN_EXECUTE_H

#include <stdbool.h>

#include "lib/channel.h"

/* True: done with the frame (the command runs, or EXEC_FAILED was sent). False: there is no leader yet;
   one is on its way, come back with the same frame. */
bool execute_begin(const struct frame *frame);
/* Answers the waiting frame with EXEC_FAILED. */
void execute_abandon(const struct frame *frame, const char *step, int error);

#endif
