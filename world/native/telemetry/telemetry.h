/* Reports of a command's programs about themselves, sent by the preload library. Forwarded in TELEMETRY,
   trusted by nobody. */
#ifndef SUBSTRATE_TELEMETRY_TELEMETRY_H
#define SUBSTRATE_TELEMETRY_TELEMETRY_H

#include <stddef.h>
#include <stdint.h>

#include "lib/fields.h"

struct command;

/* Longest address in the abstract namespace, without its first NUL (unix(7)). */
#define TELEMETRY_NAME_MAX 107

/* HEARD fields: a name, "=" and a number of 64 bits, each. */
#define TELEMETRY_NUMBERS 7
#define TELEMETRY_NUMBER_MAX 32
#define TELEMETRY_FIELDS_SIZE (TELEMETRY_NUMBERS * (FIELD_HEADER_SIZE + TELEMETRY_NUMBER_MAX))

/* Begins to listen at this address for the command's programs. On failure EXIT has no HEARD. */
void telemetry_begin(struct command *command, const uint8_t *name, size_t length);
/* Reads some waiting messages. */
void telemetry_hear(uint32_t id);
/* Reads and forwards the messages sent so far. Later messages are ignored. */
void telemetry_settle(struct command *command);
/* Sends records older than OLD_MS. Returns milliseconds until the next call, -1: nothing waits. */
int telemetry_flush_old(void);
/* Adds HEARD to EXIT. */
void telemetry_put(const struct command *command, struct field_writer *writer);
void telemetry_end(struct command *command);

#endif
