/* What `substrate hook` prints for each agent. */
#ifndef SUBSTRATE_FRONT_ANSWERS_H
#define SUBSTRATE_FRONT_ANSWERS_H

#include "../client/broker.h"
#include "agents.h"

/* Prints a denial, or nothing: the agent's own rules decide about files that the policy lets it open. */
void answers_for_files(const struct agent *agent, const struct answer *answer);
/* Prints a denial, or the same tool input with a command that runs the original one through `substrate exec`. */
void answers_for_command(const struct call *call, const struct command *command, const struct answer *answer);

#endif
