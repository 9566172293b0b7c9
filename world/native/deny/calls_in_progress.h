/* Calls of this world's commands that may name a file or open a file for writing, from notification to end.
   Only the number of a call can be trusted: the caller may change the path, and folders on the path, after
   PID 1 has read them. So a new name may be a command's work while any such call is in progress, and cannot
   be otherwise. */
#ifndef SUBSTRATE_DENY_CALLS_IN_PROGRESS_H
#define SUBSTRATE_DENY_CALLS_IN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Sets the procfs of PID 1, and whether PID 1 is notified of all these calls. */
void calls_open(int proc, bool told);
/* Begins a call that was notified and not answered: the task's previous call is over. Take all events
   first. */
void calls_begin(pid_t task);
/* False: no name since the last drop is the work of a command. */
bool calls_may_be_in_progress(void);
/* Brackets the handling of all events: when `mark` finds a call over, its events are handled before `drop`
   forgets the call. */
void calls_mark_over(void);
void calls_drop_over(void);
/* Forgets all calls: no process of a command is left. */
void calls_forget(void);
/* Returns microseconds until the next check of calls in progress, 0: due now, -1: no calls. */
int64_t calls_next_look_us(void);

#endif
