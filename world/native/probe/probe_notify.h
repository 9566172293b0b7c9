#ifndef PROBE_NOTIFY_H
#define PROBE_NOTIFY_H

/* A parent answers its child's system call. Prints `ok 1`, `ok 0` without WAIT_KILLABLE_RECV, or `failed STEP
   ERRNO`. */
int probe_notify(void);

#endif
