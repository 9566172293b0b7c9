/* A command's standard input: a pipe, as from a shell, or its terminal. Bytes that do not fit wait in PID 1. */
#ifndef SUBSTRATE_RUN_INPUT_H
#define SUBSTRATE_RUN_INPUT_H

#include <stddef.h>
#include <stdint.h>

struct command;
struct frame;
struct input;

/* Opens a pipe and returns its read end; -1 with errno. `rest`: bytes that did not fit, NULL: all was written
   and the write end is closed. */
int input_open(const uint8_t *data, size_t length, struct input **rest);
/* Opens a pipe for INPUT frames and returns its read end; -1 with errno. */
int input_open_stream(struct input **stream);
/* Makes a stream that INPUT frames write to a terminal. NULL with errno. */
struct input *input_to_terminal(int master);
/* Gives a command its input, to be written when there is room. */
void input_watch(struct command *command, struct input *input);
/* Takes an INPUT frame; a command without a stream, or that is gone, drops it. */
void input_add(const struct frame *frame);
/* Takes an INPUT_END frame. */
void input_end(const struct frame *frame);
/* Writes more: there is room, or no reader any more (EPOLLHUP or EPOLLERR in `events`). */
void input_pump(struct command *command, uint32_t events);
/* Drops unread bytes. NULL: no input. */
void input_drop(struct input *input);

#endif
