/* A plan in two parts: a world that is made ahead of need waits before the operation that is for its command alone. */
#ifndef SUBSTRATE_REST_H
#define SUBSTRATE_REST_H

#include "setup.h"

/* Lets the SETUP frame go, says STAGED and waits for REST, whose operations `cursor` then walks. The frame is to be
   released after them. Whatever else comes ends the world. */
void rest_wait(struct mount_cursor *cursor);

#endif
