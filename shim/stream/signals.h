/* Signals during a command. */
#ifndef SUBSTRATE_STREAM_SIGNALS_H
#define SUBSTRATE_STREAM_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* From now on SIGINT, SIGTERM and SIGHUP arrive only where signals_mask() and signals_let() allow. The second one ends the
   process with 128 + n at once; the kernel then closes the connection, which ends the command. A signal that is
   ignored stays ignored, as nohup(1) and shells without job control want.
   `terminal`: the same for signals that change or stop the terminal, and every signal that ends this process, SIGKILL
   excepted, restores the terminal first. */
void signals_take(bool terminal);
/* The first signal, or 0; and its name, as `SIGINT`. */
int signals_first(void);
const char *signals_first_name(void);
/* Whether the terminal has perhaps changed since the last call. True at first. */
bool signals_changed(void);
/* Says that it has. */
void signals_change(void);
/* Stops this job as the person's Ctrl-Z would, with the terminal restored; returns when it is continued, or where nothing stops it. */
void signals_stop(void);
/* Ends this process by SIGINT. A shell goes on with its loop after a program that ends with 130 by itself: it takes Ctrl-C for handled. */
void signals_interrupt(void);
/* The mask from before signals_take(), for ppoll(2). */
const sigset_t *signals_mask(void);
/* Lets signals arrive during a call that may wait, and no more. */
void signals_let(void);
void signals_hold(void);

#endif
