/* Names that the host's trees must not show, found by rules with wildcards. */
#ifndef SUBSTRATE_DENY_HOST_NAMES_H
#define SUBSTRATE_DENY_HOST_NAMES_H

#include "mount/stage.h"

/* Before the plan: hides what host rules match in the layer of whiteouts. */
void names_hide(const struct stage *stage);
/* After the plan, with the new root open: masks the same names where no host overlay could be put. */
void names_mask_hidden(const struct stage *stage);

#endif
