#define _GNU_SOURCE
#include "notify/wakeups.h"

#include <linux/seccomp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>

/* Linux 6.6, newer than the oldest headers for this build. An older kernel refuses, and nothing changes. */
#define SET_FLAGS _IOW('!', 4, uint64_t)
#define SYNC_WAKE_UP 1UL

/* Consecutive calls of a task, uninterrupted by other tasks, before the task counts as alone. */
#define ALONE 8

static pid_t last;
static unsigned in_row;
static int near_us = -1; /* the listener whose callers wake up on PID 1's processor */
static cpu_set_t allowed; /* PID 1's affinity before stay() */

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

/* A task that is alone continues on PID 1's processor while PID 1 sleeps: two switches there cost a third of
   waking up two processors. With two calling tasks, one would wait for the other while a processor sleeps (a
   build took a quarter longer). PID 1 pins itself, because epoll_wait(2) wakes on any free processor
   (ep_poll_callback drops the hint). */
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
