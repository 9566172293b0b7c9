#define _GNU_SOURCE
#include "lib/watch.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/failure.h"

/* Linux 5.11, newer than the oldest headers for this build. The same number on every architecture. */
#define CALL_EPOLL_PWAIT2 441

static int epoll;

void watch_open(void) {
  epoll = epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0) fail_world("epoll", "", errno);
}

static void control(int operation, int fd, uint32_t events, enum source source, uint32_t id) {
  struct epoll_event event = {.events = events, .data.u64 = (uint64_t)source << 32 | id};
  if (epoll_ctl(epoll, operation, fd, &event) < 0) fail_world("epoll", "", errno);
}

void watch_add(int fd, uint32_t events, enum source source, uint32_t id) {
  control(EPOLL_CTL_ADD, fd, events, source, id);
}

void watch_change(int fd, uint32_t events, enum source source, uint32_t id) {
  control(EPOLL_CTL_MOD, fd, events, source, id);
}

void watch_remove(int fd) {
  control(EPOLL_CTL_DEL, fd, 0, SOURCE_CHANNEL, 0);
}

/* Waits. A sandbox around the broker may block epoll_pwait2: then whole milliseconds, rounded up. */
static int wait_at_most(struct epoll_event *ready, int64_t us) {
  static bool coarse;
  if (us % 1000 != 0 && us > 0 && !coarse) {
    struct timespec span = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    int count = (int)syscall(CALL_EPOLL_PWAIT2, epoll, ready, EVENTS_MAX, &span, NULL, 0);
    if (count >= 0 || (errno != ENOSYS && errno != EPERM)) return count;
    coarse = true;
  }
  return epoll_wait(epoll, ready, EVENTS_MAX, us < 0 ? -1 : (int)((us + 999) / 1000));
}

int watch_wait(struct event *events, int64_t timeout_us) {
  struct epoll_event ready[EVENTS_MAX];
  int count = wait_at_most(ready, timeout_us);
  if (count < 0 && errno != EINTR) fail_world("epoll", "", errno);
  for (int i = 0; i < count; i++) {
    events[i].source = (enum source)(ready[i].data.u64 >> 32);
    events[i].id = (uint32_t)ready[i].data.u64;
    events[i].events = ready[i].events;
  }
  return count < 0 ? 0 : count;
}
