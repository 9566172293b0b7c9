/* Entering the namespaces, and what each of them needs before a command may see it. */
#ifndef SUBSTRATE_OUTER_NAMESPACES_H
#define SUBSTRATE_OUTER_NAMESPACES_H

#include "outer/setup.h"

/* In the outer process: unshares everything that the set-up asks for. The next fork is PID 1. */
void namespaces_enter(const struct setup *setup);

/* In PID 1, while it has its capabilities: host name, loopback, no nested user namespaces. */
void namespaces_prepare(const struct setup *setup, int proc_fd);

#endif
