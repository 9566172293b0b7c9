/* Forwards the commands' outputs to the broker, within their credit. */
#ifndef SUBSTRATE_RUN_OUTPUTS_H
#define SUBSTRATE_RUN_OUTPUTS_H

#include "lib/commands.h"

/* Reads from a terminal's master instead of the pipes; takes over the descriptor. */
void outputs_be_terminal(struct command *command, int master);
/* Begins to watch both pipes of a command, or its terminal. */
void outputs_watch(struct command *command);
/* Reads once from a pipe; `which` 0 is stdout. EXIT or CLOSED may be due then (ending_advance). */
void outputs_pump(struct command *command, int which);
/* Resumes after more credit, or after command->discard was set. */
void outputs_resume(struct command *command);
/* Sends what a terminal shows now, as far as the credit goes. */
void outputs_show(struct command *command);
/* Notes the bytes in the pipes now, and sends as many as the credit allows. */
void outputs_settle(struct command *command);

#endif
