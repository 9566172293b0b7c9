/* How a command ends: reports of its leader, and when to send EXIT and CLOSED. */
#ifndef SUBSTRATE_RUN_ENDINGS_H
#define SUBSTRATE_RUN_ENDINGS_H

#include "lib/commands.h"

/* Reads all reports of a command's leader. */
void ending_receive(struct command *command);
/* Handles a leader's death without a final report. */
void ending_orphaned(struct command *command);
/* Sends EXIT or CLOSED when due; may free the command. */
void ending_advance(struct command *command);
/* Reports the ends of commands whose leader was killed, once all their processes are dead. */
void endings_release(void);
/* Releases all parts of a finished command and removes the command from the table. */
void command_end(struct command *command);
/* Sends EXEC_FAILED for a command that never began. */
void ending_failed(uint32_t id, const char *step, const char *path, int error);

#endif
