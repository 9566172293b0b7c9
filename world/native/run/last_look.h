/* Last steps of an ending world: kills every process, then handles the denied names they left. Otherwise a
   command that kills the forker would end the world before any check. */
#ifndef SUBSTRATE_RUN_LAST_LOOK_H
#define SUBSTRATE_RUN_LAST_LOOK_H

/* Arms the last look for a world with guarded names. Call before the first command. The look takes at most a
   second, plus the broker's time to read. */
void last_look_arm(void);

#endif
