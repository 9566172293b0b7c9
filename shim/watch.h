/* Somebody who reports the end of a program that this process is about to become. */
#ifndef SUBSTRATE_SHIM_WATCH_H
#define SUBSTRATE_SHIM_WATCH_H

/* Starts a process that is no child of this one, holds none of its descriptors, and ends with it. False with errno. */
int watch_start(const char *socket, const char *agent, const char *span);

#endif
