/* PID 1's epoll, and the sources of its events. */
#ifndef SUBSTRATE_LIB_WATCH_H
#define SUBSTRATE_LIB_WATCH_H

#include <stdint.h>

enum source {
  SOURCE_CHANNEL,
  SOURCE_CHILDREN,
  SOURCE_FORKER,
  SOURCE_NAMES,
  SOURCE_PIDFD,     /* a watched process, by its slot */
  SOURCE_LISTENER, /* id: the leader's pid, 0: the shared listener */
  SOURCE_IDLE,     /* the idle leader */
  SOURCE_DIAL,     /* a connection in progress, by its number */
  SOURCE_REPORTS,  /* telemetry of a command's programs */
  SOURCE_STDIN,
  SOURCE_STDOUT,
  SOURCE_STDERR,
  SOURCE_LEADER
};

struct event {
  enum source source;
  uint32_t id; /* usually a command's; the command may be gone */
  uint32_t events;
};

#define EVENTS_MAX 64

/* All functions here end the world when the kernel refuses. */
void watch_open(void);
void watch_add(int fd, uint32_t events, enum source source, uint32_t id);
void watch_change(int fd, uint32_t events, enum source source, uint32_t id);
/* Removes a watch. Needed before closing a descriptor whose file is open elsewhere too: the kernel would go
   on reporting. */
void watch_remove(int fd);
/* Waits at most `timeout_us` microseconds (-1: for ever). Returns the number of events. */
int watch_wait(struct event *events, int64_t timeout_us);

#endif
