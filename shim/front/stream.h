/* Passes the bytes of a running command between its connection and the standard descriptors. */
#ifndef SUBSTRATE_FRONT_STREAM_H
#define SUBSTRATE_FRONT_STREAM_H

#include "state.h"

/* Passes bytes and signals on until the command's end. Returns the exit code. */
int stream_follow(struct stream *stream);

#endif
