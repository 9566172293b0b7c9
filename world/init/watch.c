#include "watch.h"

#include <errno.h>
#include <sys/epoll.h>

#include "failure.h"

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

int watch_wait(struct event *events, int timeout_ms) {
  struct epoll_event ready[EVENTS_MAX];
  int count = epoll_wait(epoll, ready, EVENTS_MAX, timeout_ms);
  if (count < 0 && errno != EINTR) fail_world("epoll", "", errno);
  for (int i = 0; i < count; i++) {
    events[i].source = (enum source)(ready[i].data.u64 >> 32);
    events[i].id = (uint32_t)ready[i].data.u64;
    events[i].events = ready[i].events;
  }
  return count < 0 ? 0 : count;
}
