/* What one command was about to change: each name told to the broker once, as it was at the first touch. */
#ifndef SUBSTRATE_NOTIFY_WRITES_TOUCHED_H
#define SUBSTRATE_NOTIFY_WRITES_TOUCHED_H

#include <stdbool.h>

#include "lib/fields.h"
#include "notify/writes/lookups.h"

struct command;
struct touched;

/* From now on this command is told of. False when there is no room: then it is not, and its EXIT says so. */
bool touched_begin(struct command *command);
void touched_note(struct command *command, unsigned how, const struct lookup *place);
/* A folder is about to be moved, by this caller. */
void touched_move(struct command *command, pid_t caller, bool exchanged, const struct lookup *from,
                  const struct lookup *to);
/* Before anything else that this caller does: whether the moves on their way were carried out. 0: whoever it is. */
void touched_settle(struct command *command, pid_t caller);
/* A call whose name could not be read. */
void touched_unread(struct command *command);
/* Sends what was not sent yet. */
void touched_flush(struct command *command);
/* For EXIT: whether it was told, and what is missing. At most TOUCHED_FIELDS fields of eight bytes. */
#define TOUCHED_FIELDS 3
void touched_put(const struct command *command, struct field_writer *writer);
void touched_end(struct command *command);

#endif
