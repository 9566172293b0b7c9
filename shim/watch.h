/* Somebody who reports the end of a program that this process is about to become. */
#ifndef SUBSTRATE_SHIM_WATCH_H
#define SUBSTRATE_SHIM_WATCH_H

#include <stdbool.h>

/* Starts a process that is no child of this one, holds none of its descriptors, and ends with it: while the broker thinks, for it
   takes as long to start as a short program. The descriptor by which it is told for what; when that is closed without a word, it
   ends. Negative with errno. */
int watch_start(const char *socket, const char *agent);
/* For which span, and closes the descriptor. False with errno: nobody watches. */
bool watch_for(int watcher, const char *span);

#endif
