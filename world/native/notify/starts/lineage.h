/* The programs of commands while they live: who started whom, and how each ended. Told by PROGRAMS, and decides nothing. */
#ifndef SUBSTRATE_NOTIFY_STARTS_LINEAGE_H
#define SUBSTRATE_NOTIFY_STARTS_LINEAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/fields.h"
#include "notify/starts/words.h"

struct command;
struct caller;

/* From now on this command's programs are told. False when there is no room. */
bool lineage_begin(struct command *command);
/* What it is about to be. */
void lineage_started(struct command *command, const struct caller *caller, const char *path, struct told_words words);
void lineage_refused(struct command *command, const struct caller *caller, const char *path, struct told_words words);
/* A process that is watched was reaped. */
void lineage_hear(uint32_t slot);
/* Tells what is known by now: those that ended too. */
void lineage_settle(struct command *command);
/* Looks who ended, and tells what waits longer than a moment; how long until that is due again, ms, -1: never. */
int lineage_flush_old(void);
/* For EXIT. */
void lineage_put(const struct command *command, struct field_writer *writer);
void lineage_end(struct command *command);

#endif
