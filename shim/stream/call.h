/* One call of GET /v1/stream, from the upgrade to the command's end. */
#ifndef SUBSTRATE_STREAM_CALL_H
#define SUBSTRATE_STREAM_CALL_H

#include "state.h"

/* Runs the command of a request, an execute request with stream options as JSON; NULL: attaches to the one that
   `stream->path` names. Passes the standard descriptors and
   signals on until its end. Returns the exit code, NOT_CALLED or ASK_AGAIN. */
int call_run(struct stream *stream, const char *socket, const struct buffer *body);
/* After this process's last words: ends it by SIGINT where a Ctrl-C at its terminal ended the command. Returns `code`. */
int call_end(const struct stream *stream, int code);

#endif
