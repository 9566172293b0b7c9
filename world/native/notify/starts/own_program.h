/* What a command's own program is started by: kept by PID 1, since the runner's memory is closed to it too. */
#ifndef SUBSTRATE_NOTIFY_STARTS_OWN_PROGRAM_H
#define SUBSTRATE_NOTIFY_STARTS_OWN_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "notify/starts/target.h"

struct own_program;

/* Whether it may be another file than its name says: /bin/sh, which runs what was read as a shell would, is not. */
bool own_program_counts(const uint8_t *payload, size_t length);
/* From the payload of its job. NULL: there is no memory for it. */
struct own_program *own_program_keep(const uint8_t *payload, size_t length);
void own_program_release(struct own_program *own);
/* From the first file on. */
void own_program_begin(struct own_program *own);
/* Reads the next file that its runner may try. False: there are no more. */
bool own_program_next(struct own_program *own, struct target *target, pid_t runner, enum image_found *found);

#endif
