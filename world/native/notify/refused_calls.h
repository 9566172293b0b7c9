/* The calls of one command that the filter's table refuses by default: counted, and told to the broker. */
#ifndef SUBSTRATE_NOTIFY_REFUSED_CALLS_H
#define SUBSTRATE_NOTIFY_REFUSED_CALLS_H

#include <linux/seccomp.h>
#include <stdbool.h>

struct command;

/* Counts one, and sends VIOLATION when it is the first of its kind or the count has grown a hundredfold. `refused`:
   0 or the errno that it will be answered with. False when it cannot be told: there are too many kinds. */
bool refused_calls_note(struct command *command, const struct seccomp_data *call, int refused);
/* Sends the counts that were not sent yet. */
void refused_calls_flush(struct command *command);

#endif
