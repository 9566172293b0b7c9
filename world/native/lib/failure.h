/* The only ways in which a world says no: one FAILED frame, then the end of everything in it. */
#ifndef SUBSTRATE_LIB_FAILURE_H
#define SUBSTRATE_LIB_FAILURE_H

/* What is done once before the world goes, whether it fails or its broker is gone: from now on. */
void world_on_end(void (*look)(void));

_Noreturn void fail_world(const char *step, const char *path, int error);
_Noreturn void fail_protocol(const char *what);

#endif
