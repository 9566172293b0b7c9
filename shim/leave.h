/* Environment variables set by a world for its programs do not belong outside the world. */
#ifndef SUBSTRATE_SHIM_LEAVE_H
#define SUBSTRATE_SHIM_LEAVE_H

/* Removes the world's variables, and its library from LD_PRELOAD, from the environment; other values stay. */
void leave_world(void);

#endif
