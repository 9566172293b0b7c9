/* PID 1 of the world: builds the world, then serves the broker until the channel closes. */
#ifndef SUBSTRATE_RUN_SUPERVISOR_H
#define SUBSTRATE_RUN_SUPERVISOR_H

#include "outer/setup.h"

/* `alive`: a pipe whose other end only the outer process holds. `null`: an open /dev/null. */
_Noreturn void supervisor_run(const struct setup *setup, int alive, int null);

#endif
