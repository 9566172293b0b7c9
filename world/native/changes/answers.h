/* Requests on standard input and answers on standard output, for the programs that Node starts (world/overlay/native-session.ts).
   Each is a length (u32, little-endian) and so many bytes of fields. The first field of a request is its verb, the first
   of an answer says how it went. */
#ifndef SUBSTRATE_CHANGES_ANSWERS_H
#define SUBSTRATE_CHANGES_ANSWERS_H

#include <stdbool.h>

#include "changes/text.h"

/* Fills in the last answer. False: the program ends after that answer. */
typedef bool (*request_taker)(struct text_reader *request, struct text *answer);

/* Ends the process with the broker, in the middle of a request too: for requests that only read, which may take minutes. False: the
   process outlives the broker until its request is done. */
void answers_end_with_broker(bool ends);
/* Serves requests until the input ends. Returns the program's exit code. */
int answers_serve(request_taker take);
/* Sends an answer before the last, or ends the process. */
void answers_send(const struct text *answer);
/* Replaces the answer by `failed`, the subject and the reason. */
void answer_failed(struct text *answer, const char *what, const char *why);

#endif
