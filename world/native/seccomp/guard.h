/* What stays refused where refusing is not the filter's business: a program like the filter's, run here over what a
   notification says of a call. */
#ifndef SUBSTRATE_SECCOMP_GUARD_H
#define SUBSTRATE_SECCOMP_GUARD_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Keeps a copy, as filter_keep does. */
void guard_keep(const uint8_t *instructions, size_t count);
/* True when one was kept: the filter has a listener. */
bool guard_kept(void);
/* 0: the call may go on. Else the errno that it is answered with; a program that is not understood refuses all. */
int guard_judge(const struct seccomp_data *call);

#endif
