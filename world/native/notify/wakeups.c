#define _GNU_SOURCE
#include "notify/wakeups.h"

#include <linux/seccomp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>

/* Newer than the headers it may be compiled with: Linux 6.6. An older kernel refuses, and all stays as it was. */
#define SET_FLAGS _IOW('!', 4, uint64_t)
#define SYNC_WAKE_UP 1UL

/* Calls of one task, and none of another's in between, after which it is taken to be alone. */
#define ALONE 8

static pid_t last;
static unsigned in_row;
static int near_us = -1; /* the listener whose callers wake up on our processor */
static cpu_set_t allowed; /* where we may run when nobody is near us */

static void stay(void) {
  cpu_set_t here;
  int processor = sched_getcpu();
  if (processor < 0 || processor >= CPU_SETSIZE || sched_getaffinity(0, sizeof allowed, &allowed) < 0) return;
  CPU_ZERO(&here);
  CPU_SET(processor, &here);
  sched_setaffinity(0, sizeof here, &here);
}

static void begin(int listener) {
  if (ioctl(listener, SET_FLAGS, SYNC_WAKE_UP) < 0) return;
  near_us = listener;
  stay();
}

static void end(void) {
  sched_setaffinity(0, sizeof allowed, &allowed);
  near_us = -1;
}

/* A task that is alone goes on on our processor while we sleep: two switches there cost a third of waking two processors up.
   Of two that call in turn one would wait for the other while a processor sleeps: a build took a quarter longer. We stay where
   we are, because epoll_wait(2) is woken wherever there is room (the hint is lost in ep_poll_callback). */
void wakeups_heard(int listener, pid_t task) {
  if (task != last) {
    last = task;
    in_row = 0;
    if (near_us < 0) return;
    ioctl(near_us, SET_FLAGS, 0UL);
    end();
  } else if (in_row < ALONE && ++in_row == ALONE) {
    begin(listener);
  }
}

void wakeups_forget(int listener) {
  if (near_us == listener) end();
}
