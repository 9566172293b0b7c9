/* Runs nft in this namespace on the broker's rules. */
#ifndef SUBSTRATE_NETWORK_NETWORK_RULES_H
#define SUBSTRATE_NETWORK_NETWORK_RULES_H

#include <stdbool.h>
#include <stddef.h>

/* Runs `nft -f -` on the text. False: `complaint` has the reason, without characters that JSON escapes. */
bool network_rules_apply(const char *nft, const char *text, char *complaint, size_t size);

#endif
