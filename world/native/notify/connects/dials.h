/* connect(2) and sendto(2) with an address: PID 1 makes the call itself, on a duplicate of the caller's socket. */
#ifndef SUBSTRATE_NOTIFY_CONNECTS_DIALS_H
#define SUBSTRATE_NOTIFY_CONNECTS_DIALS_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>

struct command;

/* How many descriptors PID 1 may have. Those that are kept for dials that wait. */
uint64_t dials_fit(uint64_t descriptors);

/* A notice_handler: answers at once or when the socket is ready. */
bool dial_serve(int listener, const struct seccomp_notif *notice, struct command *command);

/* The connection of that number is made, or has failed. */
void dials_hear(uint32_t number);
/* Tries again what had to wait. Milliseconds until the next try, -1: nothing waits. */
int dials_retry(void);
/* The listener is closed: nobody waits for its answers. */
void dials_forget(int listener);

#endif
