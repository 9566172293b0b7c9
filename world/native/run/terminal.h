/* A command's terminal: a pair of the world's own devpts. PID 1 keeps the master. */
#ifndef SUBSTRATE_RUN_TERMINAL_H
#define SUBSTRATE_RUN_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

/* Opens a pair: ends[0] is the non-blocking master, ends[1] the slave. -1 with errno. */
int terminal_open(uint64_t columns, uint64_t rows, int ends[2]);
/* Sets the size; the kernel sends SIGWINCH to the foreground group (pty_resize, drivers/tty/pty.c). */
void terminal_resize(int master, uint64_t columns, uint64_t rows);
/* Sends a signal to the foreground process group. False without such a group. */
bool terminal_signal(int master, int signal);
/* Returns the terminal's end-of-file character; -1 where the terminal is not in canonical mode. */
int terminal_end_character(int master);

#endif
