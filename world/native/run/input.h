/* A command's standard input: a pipe, as from a shell. Bytes that do not fit into the pipe wait in PID 1. */
#ifndef SUBSTRATE_RUN_INPUT_H
#define SUBSTRATE_RUN_INPUT_H

#include <stddef.h>
#include <stdint.h>

struct command;
struct input;

/* Opens a pipe and returns its read end; -1 with errno. `rest`: bytes that did not fit, NULL: all was written
   and the write end is closed. */
int input_open(const uint8_t *data, size_t length, struct input **rest);
/* Gives the rest to a command, to be written when there is room. */
void input_watch(struct command *command, struct input *rest);
/* Writes more: the pipe has room, or no reader any more. */
void input_pump(struct command *command);
/* Drops unread bytes. NULL: no bytes wait. */
void input_drop(struct input *rest);

#endif
