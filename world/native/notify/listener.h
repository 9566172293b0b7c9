/* Listeners of seccomp filters: one per command, from its runner; in log mode a single shared one, from the
   forker. */
#ifndef SUBSTRATE_NOTIFY_LISTENER_H
#define SUBSTRATE_NOTIFY_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

struct leader;

/* Registers functions that drop the pending calls of a listener before its close; NULL ends the list. Call
   before the first listener. */
void listeners_open(void (*const forget[])(int listener));
/* Receives the shared listener that the forker sends after loading its filter (PID 1, log mode). Ends the
   world when the forker sends no listener. */
void listener_take(int forker_socket);
/* Adds the shared listener to epoll, if there is a shared listener. */
void listener_watch(void);
/* Takes a runner's report, with or without a listener. False: its command must not run. */
bool listener_take_report(struct leader *leader, const int *fds, int count);
/* Receives a listener from the runner of an idle leader whose socket is readable. False when the runner is
   gone. */
bool listener_hear(struct leader *leader);
/* Closes a leader's listener: no process below the leader calls any more. */
void listener_remove(struct leader *leader);
/* Serves an event of a leader's listener; NULL: of the shared listener. */
void listener_serve(struct leader *leader, uint32_t events);

#endif
