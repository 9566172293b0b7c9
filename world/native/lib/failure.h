/* Ends of a world after a failure: a single FAILED frame, then the end of all its processes. */
#ifndef SUBSTRATE_LIB_FAILURE_H
#define SUBSTRATE_LIB_FAILURE_H

/* Registers callbacks to run once before the world ends: `look` while the broker can still be told, `alone` when the broker is
   gone. */
void world_on_end(void (*look)(void), void (*alone)(void));

_Noreturn void fail_world(const char *step, const char *path, int error);
_Noreturn void fail_protocol(const char *what);

#endif
