/* connect(2) and sendto(2) with an address: PID 1 makes the call itself, on a duplicate of the caller's
   socket. */
#ifndef SUBSTRATE_NOTIFY_CONNECTS_DIALS_H
#define SUBSTRATE_NOTIFY_CONNECTS_DIALS_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>

struct command;

/* False for a call of another ABI, whose numbers name other calls (log mode). */
bool dial_is_own_call(const struct seccomp_data *call);
/* Reports a socket refused to a command. */
void dial_tell_refused(struct command *command, const char *path);

/* Bounds the pending dials by PID 1's descriptor limit. Returns the number of descriptors reserved for
   dials. */
uint64_t dials_fit(uint64_t descriptors);

/* A notice_handler: answers immediately, or later once the socket is ready. */
bool dial_serve(int listener, const struct seccomp_notif *notice, struct command *command);

/* Takes an event of epoll: connection `number` is made or has failed. */
void dials_hear(uint32_t number);
/* Retries pending dials. Returns milliseconds until the next retry, -1 without pending dials. */
int dials_retry(void);
/* Drops the dials of a closed listener: no caller waits there any more. */
void dials_forget(int listener);

#endif
