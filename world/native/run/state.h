/* The file in which a command's shell leaves its folder and variables (STATE_PATH). */
#ifndef SUBSTRATE_RUN_STATE_H
#define SUBSTRATE_RUN_STATE_H

struct command;

/* Makes the empty file. One that cannot be made (a full /run) only means that no state is reported. */
void state_begin(struct command *command, const char *path);
/* Sends what the file holds, and removes it. */
void state_send(struct command *command);
/* Removes the file of a command that never began, or was lost. */
void state_drop(struct command *command);

#endif
