#define _GNU_SOURCE
#include "deny/calls_in_progress.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/file_calls.h"

/* Entries, a single one per task, each dropped some milliseconds after the end of its call. */
#define CALLS_MAX 1024

/* A call takes microseconds. A task that computes afterwards is checked again until seen asleep. Under an
   endless flood of calls, checking costs less than a hundredth of the calls. */
#define LOOK_FIRST_US 200
#define LOOK_BUSY_US 3200
#define LOOK_LAST_US 1000000

struct call {
  pid_t task;
  bool over;
};

static struct call calls[CALLS_MAX];
static int count;
static bool untold = true; /* no notifications of these calls: any may be in progress */
static bool uncounted;     /* the table was full for a call */
static int procfs = -1;
static bool more; /* a call began since the last check */
static int64_t due, pause_us;

static int64_t now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void look_after(int64_t us) {
  pause_us = us;
  due = now_us() + us;
}

void calls_open(int proc, bool told) {
  procfs = proc;
  untold = !told || faccessat(proc, "1/syscall", F_OK, 0) < 0;
}

bool calls_may_be_in_progress(void) {
  return untold || uncounted || count > 0;
}

void calls_begin(pid_t task) {
  if (untold) return;
  more = true;
  if (count == 0) look_after(LOOK_FIRST_US);
  else if (pause_us > LOOK_BUSY_US) look_after(LOOK_BUSY_US);
  for (int i = 0; i < count; i++) {
    if (calls[i].task != task) continue;
    calls[i].over = false;
    return;
  }
  if (count == CALLS_MAX) uncounted = true;
  else calls[count++] = (struct call){.task = task};
}

static bool is_told(long number) {
  return number == SYS_bind || number == SYS_ioctl || file_call_is_one((int)number);
}

/* True when the task's call is over. /proc/TID/syscall begins with the number of a sleeping task's call, -1
   outside of calls, or "running": possibly still in the call. An unreadable file (of an undumpable program)
   also counts as possibly in the call. */
static bool is_over(pid_t task) {
  char path[32], text[32] = "";
  snprintf(path, sizeof path, "%d/syscall", (int)task);
  int file = openat(procfs, path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno == ENOENT || errno == ESRCH;
  ssize_t length = read(file, text, sizeof text - 1);
  int error = errno;
  close(file);
  if (length < 0) return error == ESRCH;
  char *end;
  long number = strtol(text, &end, 10);
  return end != text && !is_told(number);
}

void calls_mark_over(void) {
  for (int i = 0; i < count; i++) calls[i].over = calls[i].over || is_over(calls[i].task);
}

void calls_drop_over(void) {
  int kept = 0;
  for (int i = 0; i < count; i++) {
    if (!calls[i].over) calls[kept++] = calls[i];
  }
  count = kept;
  int64_t longest = more ? LOOK_BUSY_US : LOOK_LAST_US;
  look_after(2 * pause_us < longest ? 2 * pause_us : longest);
  more = false;
}

void calls_forget(void) {
  count = 0;
  uncounted = false;
}

int64_t calls_next_look_us(void) {
  if (count == 0) return -1;
  int64_t left = due - now_us();
  return left > 0 ? left : 0;
}
