/* Passes the bytes of a running command between its connection and the standard descriptors. */
#ifndef SUBSTRATE_STREAM_FOLLOW_H
#define SUBSTRATE_STREAM_FOLLOW_H

#include "state.h"

/* Passes bytes and signals on until the command's end. Returns the exit code. */
int follow(struct stream *stream);

#endif
