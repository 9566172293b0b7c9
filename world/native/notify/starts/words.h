/* The arguments of a program that is about to start, read in its caller's memory. */
#ifndef SUBSTRATE_NOTIFY_STARTS_WORDS_H
#define SUBSTRATE_NOTIFY_STARTS_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* As much as PROGRAMS tells of a program, bytes. */
#define WORDS_SHORT 4096
/* FRAME_MAX_WORDS */
#define WORDS_LONG 65536

struct words {
  size_t count;
  size_t length;
  bool cut; /* there are more, or longer ones */
  char text[WORDS_LONG]; /* each with its NUL */
};

/* The argv at this address. False when the caller's memory is closed to us. */
bool words_read(pid_t caller, uint64_t address, struct words *words);

void words_clear(struct words *words);
void words_add(struct words *words, const char *word);
/* All but the first `skip` of `more`. */
void words_append(struct words *words, const struct words *more, size_t skip);
/* As much of them as PROGRAMS tells: bytes of words, of which the last may lack its NUL. */
struct told_words {
  const char *text;
  size_t length;
  bool cut;
};
struct told_words words_told(const struct words *words);

#endif
