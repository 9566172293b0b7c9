/* The terminal at the standard descriptors, while a command elsewhere has it as its own. */
#ifndef SUBSTRATE_CLIENT_TERMINAL_H
#define SUBSTRATE_CLIENT_TERMINAL_H

#include "buffer.h"

/* Whether descriptors 0 to 2 are terminals, and this process's job is in the foreground of the first. */
bool terminal_is_ours(void);
/* Whether any of them is a terminal whose foreground this process is in. */
bool terminal_is_in_front(void);
/* Passes every key on as it is typed, and output unchanged, until terminal_restore(). May be called again: a shell
   sets the modes anew when it continues a stopped job. Does nothing in the background. */
void terminal_take(void);
/* Makes the terminal fit for a question, taken or not: what the person reads must be seen as it is printed. The program's screen stays. */
void terminal_lend(void);
/* Gives the terminal back to the shell: restores the modes from before terminal_take(), resets what output has set (terminal_seen()), and
   forgets what was typed for the program. Without effect for a terminal that was not taken or that another job has by now. */
void terminal_restore(void);
/* The same in a signal handler: a terminal without room for the reset goes without it. */
void terminal_restore_now(void);
/* After the output of a command that had pipes: only its colours of text could hide a later question. */
void terminal_left(void);
/* Looks at output that is about to be printed. */
void terminal_seen(const char *bytes, size_t length);
/* Size of the terminal; 80 by 24 for a terminal that has none. */
void terminal_size(unsigned *columns, unsigned *rows);
/* Adds the fields of a request for a command with such a terminal. */
void terminal_add(struct buffer *body);

#endif
