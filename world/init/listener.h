/* Log mode: the filter does not refuse, it asks PID 1, and PID 1 tells the broker before it lets a call through. */
#ifndef SUBSTRATE_LISTENER_H
#define SUBSTRATE_LISTENER_H

/* PID 1: takes the descriptor that the forker sends when its filter is loaded. Ends the world when none comes. */
void listener_take(int forker_socket);
/* Adds it to the epoll; nothing when there is none. */
void listener_watch(void);
/* One call waits: who made it, told, answered. */
void listener_serve(void);

#endif
