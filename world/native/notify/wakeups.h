/* Chooses the processor where an answered caller continues: PID 1's or a free one. */
#ifndef SUBSTRATE_NOTIFY_WAKEUPS_H
#define SUBSTRATE_NOTIFY_WAKEUPS_H

#include <sys/types.h>

/* Notes a task's call at this listener. Call before the answer. */
void wakeups_heard(int listener, pid_t task);
/* Forgets a closed listener. */
void wakeups_forget(int listener);

#endif
