/* TCP connections of commands that the world's network refuses: no listener of the gateway sees them. */
#ifndef SUBSTRATE_NOTIFY_CONNECTS_REFUSED_ADDRESSES_H
#define SUBSTRATE_NOTIFY_CONNECTS_REFUSED_ADDRESSES_H

#include <stdint.h>

#include "notify/connects/dial_parts.h"

/* Reports a refused connect(2) to an address other than localhost. `error`: of PID 1's call. */
void refused_addresses_note(uint32_t id, int socket, const struct dial_address *address, int error);

#endif
