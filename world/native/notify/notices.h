/* Answering a listener: what a call is decides who deals with it. */
#ifndef SUBSTRATE_NOTIFY_NOTICES_H
#define SUBSTRATE_NOTIFY_NOTICES_H

#include <stdbool.h>
#include <stdint.h>

struct command;

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
