/* Calls of this world's commands that may give something a name or open it for writing, from their notification until they
   are over. Only the number of a call can be trusted: its caller may change the path, and folders on it, after PID 1 has read
   them. So while one is in progress, whatever turns up may be its work, and while none is, nothing can be. */
#ifndef SUBSTRATE_DENY_CALLS_IN_PROGRESS_H
#define SUBSTRATE_DENY_CALLS_IN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The procfs of PID 1, and whether PID 1 is notified of all these calls. */
void calls_open(int proc, bool told);
/* The task has been notified of and not answered: its call before this one is over. Take all events first. */
void calls_begin(pid_t task);
/* False: nothing that turned up since the last drop is the work of a command. */
bool calls_may_be_in_progress(void);
/* Around taking all events: an event of a call that is over when `mark` looks has been taken when `drop` forgets the call. */
void calls_mark_over(void);
void calls_drop_over(void);
/* No process of a command is left. */
void calls_forget(void);
/* Microseconds until the next look at calls in progress is due, 0: now, -1: there are none. */
int64_t calls_next_look_us(void);

#endif
