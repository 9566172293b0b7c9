/* Starts of programs that wait for the broker's answer. */
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
  uint64_t token; /* what the listener knows it by, and ANSWER too */
  struct caller caller;
  uint64_t mark; /* what it is known by when it is asked for again */
  bool own;      /* the command's own program, which nobody is told of */
};

/* It waits from now on. False: too many do. */
bool pending_add(const struct pending *start, const char *path, struct told_words words);
/* Whether the same start was refused a moment ago: a shell that looks along PATH asks for one program twice. */
bool pending_was_refused(const struct command *command, uint64_t mark);
/* ANSWER: a malformed one ends the world; one that comes too late is nothing. */
void pending_answer(const struct frame *frame);
/* Refuses what waits for too long. How long until the next does, -1: none. */
int pending_check_deadlines(void);
/* This listener is about to be closed, and nobody waits at it any more. */
void pending_forget(int listener);

#endif
