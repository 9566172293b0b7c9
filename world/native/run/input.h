/* What a command reads on its standard input: a pipe, as a shell gives it. What does not fit into the pipe waits in PID 1. */
#ifndef SUBSTRATE_RUN_INPUT_H
#define SUBSTRATE_RUN_INPUT_H

#include <stddef.h>
#include <stdint.h>

struct command;
struct input;

/* The reading end of a new pipe; -1 with errno. `rest` is what did not fit, NULL: the writing end is closed already. */
int input_open(const uint8_t *data, size_t length, struct input **rest);
/* Belongs to a command from now on, and is written whenever there is room. */
void input_watch(struct command *command, struct input *rest);
/* There is room, or nobody reads any more. */
void input_pump(struct command *command);
/* Forgets what nobody has read. NULL: nothing waits. */
void input_drop(struct input *rest);

#endif
