/* Decides in log mode, where the filter only notifies, which calls stay refused: runs a filter program over
   the data of a notification. */
#ifndef SUBSTRATE_SECCOMP_GUARD_H
#define SUBSTRATE_SECCOMP_GUARD_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Keeps a copy, as filter_keep does. */
void guard_keep(const uint8_t *instructions, size_t count);
/* True with a kept guard: the filter has a listener. */
bool guard_kept(void);
/* Returns 0 if the call may go on, otherwise the errno of its answer. A program with an unknown instruction
   refuses all calls. */
int guard_judge(const struct seccomp_data *call);

#endif
