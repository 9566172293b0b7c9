/* Answers seccomp notifications through a table of handlers. */
#ifndef SUBSTRATE_NOTIFY_NOTICES_H
#define SUBSTRATE_NOTIFY_NOTICES_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct command;

/* Handles a call, at once or later. False: another handler's call. `command` may be NULL. */
typedef bool (*notice_handler)(int listener, const struct seccomp_notif *notice, struct command *command);

struct notice_service {
  notice_handler serve; /* NULL ends the table */
  bool of_world;        /* also for calls at the shared listener (log mode) */
};

/* Registers the handlers, asked in order. Calls without a handler go on; in log mode the guard judges them.
   `owner` finds a process's command, or NULL. Call before the first notification. */
void notices_open(const struct notice_service *table, struct command *(*owner)(pid_t task));

/* Serves one pending call at a command's listener. */
void notice_serve(int listener, struct command *command);
/* Serves one pending call at the shared listener; the process tree names the caller's command. */
void notice_serve_world(int listener);

/* True while the caller still waits: its pid cannot have been reused. */
bool notice_waits(int listener, uint64_t id);
/* Answers a call: 0 lets the call go on, otherwise the call fails with this errno. False: the caller was
   killed meanwhile, and the call is not carried out. Any other failure ends the world, because an unanswered
   caller would wait for ever. */
bool notice_answer(int listener, uint64_t id, int refused);
/* Completes a call that PID 1 carried out: returns `value`, or fails with errno `failed` unless 0. Returns
   false like notice_answer. */
bool notice_return(int listener, uint64_t id, int64_t value, int failed);

#endif
