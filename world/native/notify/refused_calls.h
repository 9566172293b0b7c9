/* Calls of a command that the filter's table refuses by default: counted, and reported to the broker. */
#ifndef SUBSTRATE_NOTIFY_REFUSED_CALLS_H
#define SUBSTRATE_NOTIFY_REFUSED_CALLS_H

#include <linux/seccomp.h>
#include <stdbool.h>

struct command;

/* Counts a call, and sends VIOLATION for the first of its kind and whenever the count has grown a
   hundredfold. `refused`: 0 or the errno of the answer. False when the table of kinds is full and the call
   cannot be reported. */
bool refused_calls_note(struct command *command, const struct seccomp_data *call, int refused);
/* Reports counts that have grown since the last VIOLATION. */
void refused_calls_flush(struct command *command);

#endif
