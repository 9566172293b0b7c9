/* The one epoll of PID 1, and what its events mean. */
#ifndef SUBSTRATE_LIB_WATCH_H
#define SUBSTRATE_LIB_WATCH_H

#include <stdint.h>

enum source {
  SOURCE_CHANNEL,
  SOURCE_CHILDREN,
  SOURCE_FORKER,
  SOURCE_NAMES,
  SOURCE_PIDFD,     /* a process that is watched, by its slot */
  SOURCE_LISTENER, /* its id is the leader's pid, 0: the one of all */
  SOURCE_IDLE,     /* the idle leader */
  SOURCE_DIAL,     /* a connection that is being made, by its number */
  SOURCE_REPORTS,  /* what a command's programs say */
  SOURCE_STDIN,
  SOURCE_STDOUT,
  SOURCE_STDERR,
  SOURCE_LEADER
};

struct event {
  enum source source;
  uint32_t id; /* of the command; what it names may be gone by now */
  uint32_t events;
};

#define EVENTS_MAX 64

/* All of these end the world when the kernel refuses. */
void watch_open(void);
void watch_add(int fd, uint32_t events, enum source source, uint32_t id);
void watch_change(int fd, uint32_t events, enum source source, uint32_t id);
/* Before a descriptor is closed whose file is open elsewhere too: the kernel would go on telling of it. */
void watch_remove(int fd);
/* Waits at most `timeout_us` microseconds (-1: for ever). The number of events. */
int watch_wait(struct event *events, int64_t timeout_us);

#endif
