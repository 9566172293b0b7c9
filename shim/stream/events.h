/* Text messages of the broker on GET /v1/stream. */
#ifndef SUBSTRATE_STREAM_EVENTS_H
#define SUBSTRATE_STREAM_EVENTS_H

#include "state.h"

/* Takes one message. Returns the exit code at the end of the command or call, else GOES_ON. */
int events_take(struct stream *stream, const char *text, size_t length);

#endif
