/* What a world puts into the variables of its programs has no place outside of it. */
#ifndef SUBSTRATE_SHIM_LEAVE_H
#define SUBSTRATE_SHIM_LEAVE_H

/* Takes it out of this process's environment. What is there beside it stays, as it was. */
void leave_world(void);

#endif
