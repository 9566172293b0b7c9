/* What `substrate hook` prints for each agent. */
#ifndef SUBSTRATE_FRONT_ANSWERS_H
#define SUBSTRATE_FRONT_ANSWERS_H

#include <stdbool.h>

#include "../client/broker.h"
#include "agents.h"

/* Leaves the tool to the agent's own rules. */
void answers_pass(const struct agent *agent);
/* Whether a command has the form that answers_for_command() gives it, for the same agent and session. */
bool answers_is_rewritten(const struct call *call, const char *command);
/* Prints a denial, or nothing: the agent's own rules decide about files that the policy lets it open. A denial too for a file that only a
   world may have. */
void answers_for_files(const struct call *call, const struct answer *answer);
/* Prints a denial, or the same tool input with a command that runs the original one through `substrate exec`. In an agent's
   last event that is a denial too, which names the command to run instead. */
void answers_for_command(const struct call *call, const struct command *command, const struct answer *answer);

#endif
