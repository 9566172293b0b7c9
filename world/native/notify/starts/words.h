/* Arguments of a program that is about to start, read from its caller's memory. */
#ifndef SUBSTRATE_NOTIFY_STARTS_WORDS_H
#define SUBSTRATE_NOTIFY_STARTS_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/frames.h"

/* Bytes of arguments that PROGRAMS reports for each program. */
#define WORDS_SHORT 4096
#define WORDS_LONG FRAME_MAX_WORDS

struct words {
  size_t count;
  size_t length;
  bool cut; /* more or longer arguments exist */
  char text[WORDS_LONG]; /* arguments, each with its NUL */
};

/* Reads the argv at this address. False when the caller's memory is closed to PID 1. */
bool words_read(pid_t caller, uint64_t address, struct words *words);

void words_clear(struct words *words);
void words_add(struct words *words, const char *word);
/* Appends all but the first `skip` arguments of `more`. */
void words_append(struct words *words, const struct words *more, size_t skip);
/* Arguments as far as PROGRAMS reports them: the last may lack its NUL. */
struct told_words {
  const char *text;
  size_t length;
  bool cut;
};
struct told_words words_told(const struct words *words);

#endif
