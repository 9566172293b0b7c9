/* What a world does before it goes: it ends every process, then deals with the denied names that they left.
   Who ends a world from inside (it kills the forker) would otherwise be gone before anybody looked. */
#ifndef SUBSTRATE_RUN_LAST_LOOK_H
#define SUBSTRATE_RUN_LAST_LOOK_H

/* From here on, where names are watched: commands may run. It takes a second at most, and what the broker takes to listen. */
void last_look_arm(void);

#endif
