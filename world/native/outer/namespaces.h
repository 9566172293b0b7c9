/* Enters the namespaces and prepares them for commands. */
#ifndef SUBSTRATE_OUTER_NAMESPACES_H
#define SUBSTRATE_OUTER_NAMESPACES_H

#include "outer/setup.h"

/* Unshares all namespaces of the set-up, in the outer process. The next fork is PID 1. */
void namespaces_enter(const struct setup *setup);

/* Sets host name and loopback and forbids nested user namespaces, in PID 1, while capabilities are left. */
void namespaces_prepare(const struct setup *setup, int proc_fd);

#endif
