/* Hides names in the host's trees, found by rules with wildcards. */
#ifndef SUBSTRATE_DENY_HOST_NAMES_H
#define SUBSTRATE_DENY_HOST_NAMES_H

#include "mount/stage.h"

/* Puts whiteouts over matches of host rules. Call before the plan is applied. */
void names_hide(const struct stage *stage);
/* Masks the same names where a host overlay is impossible. Call after the plan, with the new root open. */
void names_mask_hidden(const struct stage *stage);

#endif
