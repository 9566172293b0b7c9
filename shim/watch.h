/* A watcher process, which reports the end of the program started by the shim. */
#ifndef SUBSTRATE_SHIM_WATCH_H
#define SUBSTRATE_SHIM_WATCH_H

#include <stdbool.h>

/* Starts the watcher: no child of the shim, without the shim's descriptors, ending after the shim. Starting
   takes as long as a short program, so call before waiting for the broker's answer. Returns the descriptor
   for watch_for(), negative with errno; closing the descriptor without a span ends the watcher. */
int watch_start(const char *socket, const char *agent);
/* Sends the span to the watcher and closes the descriptor. False with errno: the end will not be reported. */
bool watch_for(int watcher, const char *span);

#endif
