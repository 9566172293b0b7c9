#ifndef PROBE_NOTIFY_H
#define PROBE_NOTIFY_H

/* Lets a parent answer a system call of its child. Prints `ok 1`, `ok 0` without WAIT_KILLABLE_RECV, or
   `failed STEP ERRNO`. */
int probe_notify(void);

#endif
