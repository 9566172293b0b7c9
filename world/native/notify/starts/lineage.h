/* Records the programs of commands: parent, start and end of each. Reports PROGRAMS, decides nothing. */
#ifndef SUBSTRATE_NOTIFY_STARTS_LINEAGE_H
#define SUBSTRATE_NOTIFY_STARTS_LINEAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/fields.h"
#include "notify/starts/words.h"

struct command;
struct caller;

/* Begins to report this command's programs. False without memory. */
bool lineage_begin(struct command *command);
/* Report a program that is about to start, and a refused start. */
void lineage_started(struct command *command, const struct caller *caller, const char *path, struct told_words words);
void lineage_refused(struct command *command, const struct caller *caller, const char *path, struct told_words words);
/* Takes an event of epoll: a watched process was reaped. */
void lineage_hear(uint32_t slot);
/* Sends every record of a command, and the processes that ended by now. */
void lineage_settle(struct command *command);
/* Checks for ended processes, and sends records older than OLD_MS. Returns milliseconds until the next check,
   -1: nothing pending. */
int lineage_flush_old(void);
/* Adds the number of unreported programs to EXIT. */
void lineage_put(const struct command *command, struct field_writer *writer);
void lineage_end(struct command *command);

#endif
