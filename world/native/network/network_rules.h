/* nft, run in our namespace on rules that the broker wrote. */
#ifndef SUBSTRATE_NETWORK_NETWORK_RULES_H
#define SUBSTRATE_NETWORK_NETWORK_RULES_H

#include <stdbool.h>
#include <stddef.h>

/* Runs `nft -f -` on the text. False: `complaint` says why, in text that needs no escapes in JSON. */
bool network_rules_apply(const char *nft, const char *text, char *complaint, size_t size);

#endif
