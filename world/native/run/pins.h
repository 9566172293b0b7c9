/* Folders of the own home kept in place for other worlds of that home. */
#ifndef SUBSTRATE_RUN_PINS_H
#define SUBSTRATE_RUN_PINS_H

#include "lib/channel.h"

/* Answers PIN. */
void pins_add(const struct frame *frame);

#endif
