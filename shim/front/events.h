/* Events of coding agents that decide nothing: they are recorded as spans. */
#ifndef SUBSTRATE_FRONT_EVENTS_H
#define SUBSTRATE_FRONT_EVENTS_H

#include "agents.h"

/* The kind of such an event, as POST /v1/events takes it; NULL for every other event. */
const char *events_kind(struct json event);
/* Adds what is recorded of the event. Ends the hook for a tool's input of a wrong type. */
void events_add(struct buffer *body, const struct agent *agent, struct json event, const char *kind);

#endif
