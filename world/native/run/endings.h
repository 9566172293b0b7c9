/* How a command ends: what its leader reports, and when EXIT and CLOSED may be sent. */
#ifndef SUBSTRATE_RUN_ENDINGS_H
#define SUBSTRATE_RUN_ENDINGS_H

#include "lib/commands.h"

/* Reads all reports of a command's leader. */
void ending_receive(struct command *command);
/* The leader died without a last word. */
void ending_orphaned(struct command *command);
/* Sends what is due; the command may be gone afterwards. */
void ending_advance(struct command *command);
/* Tells the ends of commands whose leader was killed, once nothing of them is left. */
void endings_release(void);
/* Nothing of the command is left: releases all its parts, and takes it out of the table. */
void command_end(struct command *command);
/* The command never began: EXEC_FAILED. */
void ending_failed(uint32_t id, const char *step, const char *path, int error);

#endif
