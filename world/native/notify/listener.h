/* The listeners of seccomp filters: one for each command, from its runner, or in log mode one of all, from the forker. */
#ifndef SUBSTRATE_NOTIFY_LISTENER_H
#define SUBSTRATE_NOTIFY_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

struct leader;

/* Who lets go of the calls that wait at a listener before it is closed; NULL ends the list. Before the first one comes. */
void listeners_open(void (*const forget[])(int listener));
/* PID 1, log mode: takes the descriptor that the forker sends when its filter is loaded. Ends the world when none comes. */
void listener_take(int forker_socket);
/* Adds it to the epoll; nothing when there is none. */
void listener_watch(void);
/* A report of a runner's came, with its listener or without. False: its command must not run. */
bool listener_take_report(struct leader *leader, const int *fds, int count);
/* The idle leader's socket is readable: its runner hands one over. False when instead it is gone. */
bool listener_hear(struct leader *leader);
/* Nobody below this leader calls any more. */
void listener_remove(struct leader *leader);
/* Something happened at the listener of this leader; NULL: of the one of all. */
void listener_serve(struct leader *leader, uint32_t events);

#endif
