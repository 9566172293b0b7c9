/* On which processor a caller goes on when it is answered: on ours, or on one that is free. */
#ifndef SUBSTRATE_NOTIFY_WAKEUPS_H
#define SUBSTRATE_NOTIFY_WAKEUPS_H

#include <sys/types.h>

/* This task's call came at this listener: before it is answered. */
void wakeups_heard(int listener, pid_t task);
/* This listener is closed. */
void wakeups_forget(int listener);

#endif
