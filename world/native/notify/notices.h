/* Answering a listener: a table says who deals with which call. */
#ifndef SUBSTRATE_NOTIFY_NOTICES_H
#define SUBSTRATE_NOTIFY_NOTICES_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct command;

/* Deals with a call, at once or later. False: it is not its business. `command` may be NULL. */
typedef bool (*notice_handler)(int listener, const struct seccomp_notif *notice, struct command *command);

struct notice_service {
  notice_handler serve; /* NULL ends the table */
  bool of_world;        /* also of calls at the listener of all (log mode) */
};

/* Before the first call: who is asked, one after the other. What nobody deals with goes on; in log mode the guard judges it.
   `owner`: whose a process is, NULL when it is nobody's. */
void notices_open(const struct notice_service *table, struct command *(*owner)(pid_t task));

/* One call waits at a listener of this command's. */
void notice_serve(int listener, struct command *command);
/* One waits at the listener of all: whose it is is found by the process tree. */
void notice_serve_world(int listener);

/* True when the process that asked still waits, so its number cannot have come to stand for another one. */
bool notice_waits(int listener, uint64_t id);
/* 0: the call goes on, else it fails with that errno. False: whoever asked was killed meanwhile, and nothing is carried out. Any
   other way of not being answered would leave a process waiting for ever. */
bool notice_answer(int listener, uint64_t id, int refused);
/* The call was carried out here: it returns `value`, or fails with the errno `failed` where that is not 0. False as above. */
bool notice_return(int listener, uint64_t id, int64_t value, int failed);

#endif
