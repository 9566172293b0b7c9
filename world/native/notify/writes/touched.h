/* Names that a command was about to change: each reported to the broker once, with its state at the first
   touch. */
#ifndef SUBSTRATE_NOTIFY_WRITES_TOUCHED_H
#define SUBSTRATE_NOTIFY_WRITES_TOUCHED_H

#include <stdbool.h>

#include "lib/fields.h"
#include "notify/writes/lookups.h"

struct command;
struct touched;

/* Begins to report this command's changes. False without memory: nothing is reported, and EXIT says so. */
bool touched_begin(struct command *command);
void touched_note(struct command *command, unsigned how, const struct lookup *place);
/* Notes a folder move that this caller is about to make. */
void touched_move(struct command *command, pid_t caller, bool exchanged, const struct lookup *from,
                  const struct lookup *to);
/* Checks whether pending moves were carried out. Call before any other work on this caller; 0: for all
   callers. */
void touched_settle(struct command *command, pid_t caller);
/* Counts a call whose name could not be read. */
void touched_unread(struct command *command);
/* Sends unsent records. */
void touched_flush(struct command *command);
/* Adds to EXIT whether changes were reported and how many are missing. At most TOUCHED_FIELDS fields of eight
   bytes. */
#define TOUCHED_FIELDS 3
void touched_put(const struct command *command, struct field_writer *writer);
void touched_end(struct command *command);

#endif
