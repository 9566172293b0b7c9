/* What the programs of a command report of themselves, by the preload library. Told by TELEMETRY, believed by nobody. */
#ifndef SUBSTRATE_TELEMETRY_TELEMETRY_H
#define SUBSTRATE_TELEMETRY_TELEMETRY_H

#include <stddef.h>
#include <stdint.h>

#include "lib/fields.h"

struct command;

/* Of an address in the abstract namespace, without its first NUL (unix(7)). */
#define TELEMETRY_NAME_MAX 107

/* HEARD: a name, "=" and a number of 64 bits, each. */
#define TELEMETRY_NUMBERS 7
#define TELEMETRY_NUMBER_MAX 32
#define TELEMETRY_FIELDS_SIZE (TELEMETRY_NUMBERS * (FIELD_HEADER_SIZE + TELEMETRY_NUMBER_MAX))

/* From now on this command's programs are listened to there. Where that cannot be, EXIT has no HEARD. */
void telemetry_begin(struct command *command, const uint8_t *name, size_t length);
/* Some of what was said. */
void telemetry_hear(uint32_t id);
/* Takes and tells what was said by now. Nothing that is said later is listened to. */
void telemetry_settle(struct command *command);
/* Tells what waits longer than a moment; how long until that is due again, ms, -1: never. */
int telemetry_flush_old(void);
/* For EXIT. */
void telemetry_put(const struct command *command, struct field_writer *writer);
void telemetry_end(struct command *command);

#endif
