/* How a command's own program is started: kept by PID 1, because the runner's memory is closed to PID 1
   too. */
#ifndef SUBSTRATE_NOTIFY_STARTS_OWN_PROGRAM_H
#define SUBSTRATE_NOTIFY_STARTS_OWN_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "notify/starts/target.h"

struct own_program;

/* True when the file may differ from its name. False for /bin/sh: the broker has read its script as a shell
   would. */
bool own_program_counts(const uint8_t *payload, size_t length);
/* Copies the program from the payload of its job. NULL without memory. */
struct own_program *own_program_keep(const uint8_t *payload, size_t length);
void own_program_release(struct own_program *own);
/* Restarts own_program_next at the first file. */
void own_program_begin(struct own_program *own);
/* Resolves the next file that the runner may try. False at the end. */
bool own_program_next(struct own_program *own, struct target *target, pid_t runner, enum image_found *found);

#endif
