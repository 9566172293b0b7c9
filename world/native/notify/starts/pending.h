/* Program starts that wait for the broker's answer. */
#ifndef SUBSTRATE_NOTIFY_STARTS_PENDING_H
#define SUBSTRATE_NOTIFY_STARTS_PENDING_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/callers.h"
#include "notify/starts/words.h"

struct command;
struct frame;

struct pending {
  uint32_t command;
  int listener;
  uint64_t token; /* id of the notification, repeated in ANSWER */
  struct caller caller;
  uint64_t mark; /* hash that recognises a repeated start */
  bool own;      /* the command's own program, which lineage does not report */
};

/* Queues a start. False when the queue is full. */
bool pending_add(const struct pending *start, const char *path, struct told_words words);
/* True when the same start was refused a moment ago: a shell searching PATH tries a program twice. */
bool pending_was_refused(const struct command *command, uint64_t mark);
/* Takes an ANSWER frame. A malformed frame ends the world; a late answer is ignored. */
void pending_answer(const struct frame *frame);
/* Refuses starts past their deadline. Returns milliseconds until the next deadline, -1 when nothing is
   pending. */
int pending_check_deadlines(void);
/* Drops the pending starts of a listener that is about to be closed; no process waits there. */
void pending_forget(int listener);

#endif
