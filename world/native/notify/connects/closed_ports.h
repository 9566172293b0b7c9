/* TCP ports of the world's own localhost that refused a command: its programs say nothing of whose localhost it is. */
#ifndef SUBSTRATE_NOTIFY_CONNECTS_CLOSED_PORTS_H
#define SUBSTRATE_NOTIFY_CONNECTS_CLOSED_PORTS_H

#include <stdint.h>

#include "lib/commands.h"
#include "lib/fields.h"
#include "notify/connects/dial_parts.h"

/* Notes how a connect by the command `id` went; `error` as returned to the caller. A port that answers later is open. */
void closed_ports_note(uint32_t id, int socket, const struct dial_address *address, int error);

#define CLOSED_PORTS_FIELDS_SIZE (CLOSED_PORTS_MAX * (FIELD_HEADER_SIZE + 8))
/* Adds the ports to EXIT. */
void closed_ports_put(const struct closed_ports *ports, struct field_writer *writer);

#endif
