/* What a world does before it goes: it ends every process, then deals with the denied names that they left.
   Who ends a world from inside (it kills the forker) would otherwise be gone before anybody looked. */
#ifndef SUBSTRATE_RUN_LAST_LOOK_H
#define SUBSTRATE_RUN_LAST_LOOK_H

/* From here on: commands may run. */
void last_look_arm(void);
/* Once; does nothing where no names are watched. Takes a second at most, and what the broker takes to listen. */
void last_look(void);

#endif
