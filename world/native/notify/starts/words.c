#define _GNU_SOURCE
#include "notify/starts/words.h"

#include <string.h>
#include <sys/uio.h>

#include "lib/callers.h"

#define PAGE 4096
/* Arguments read in a batch, and bytes read of each: few are longer. */
#define BATCH 64
#define PIECE 128

void words_clear(struct words *words) {
  words->count = words->length = 0;
  words->cut = false;
}

static void put(struct words *words, const char *text, size_t length) {
  size_t room = WORDS_LONG - words->length;
  if (room == 0) {
    words->cut = true;
    return;
  }
  if (length >= room) {
    length = room - 1;
    words->cut = true;
  }
  memcpy(words->text + words->length, text, length);
  words->text[words->length + length] = 0;
  words->length += length + 1;
  words->count++;
}

void words_add(struct words *words, const char *word) {
  put(words, word, strlen(word));
}

void words_append(struct words *words, const struct words *more, size_t skip) {
  const char *at = more->text;
  words->cut |= more->cut;
  for (size_t i = 0; i < more->count; i++) {
    if (i >= skip) words_add(words, at);
    at += strlen(at) + 1;
  }
}

/* Reads the pointers up to the end of the page. -1: unreadable memory. */
static int read_pointers(pid_t caller, uint64_t address, uint64_t pointers[BATCH]) {
  size_t there = (PAGE - address % PAGE) / sizeof *pointers;
  /* A pointer may cross a page boundary: the kernel accepts such an argv. */
  size_t count = there == 0 ? 1 : there < BATCH ? there : BATCH;
  return callers_memory(caller, address, pointers, count * sizeof *pointers) ? (int)count : -1;
}

/* Marks an argument longer than its piece: read separately. */
#define UNREAD SIZE_MAX

/* Reads the beginnings of `count` arguments in a single call, and their lengths. */
static void read_pieces(pid_t caller, const uint64_t *pointers, size_t count, char pieces[BATCH][PIECE],
                        size_t lengths[BATCH]) {
  struct iovec here[BATCH], there[BATCH];
  for (size_t i = 0; i < count; i++) {
    size_t part = PAGE - pointers[i] % PAGE;
    if (part > PIECE) part = PIECE;
    here[i] = (struct iovec){pieces[i], part};
    there[i] = (struct iovec){(void *)(uintptr_t)pointers[i], part};
  }
  ssize_t got = callers_read(caller, here, there, count);
  size_t left = got < 0 ? 0 : (size_t)got;
  for (size_t i = 0; i < count; i++) {
    size_t part = here[i].iov_len;
    const char *end = left < part ? NULL : memchr(pieces[i], 0, part);
    lengths[i] = end == NULL ? UNREAD : (size_t)(end - pieces[i]);
    left -= left < part ? left : part;
  }
}

static bool read_long(pid_t caller, uint64_t address, struct words *words) {
  static char text[WORDS_LONG];
  size_t room = WORDS_LONG - words->length;
  if (room == 0) {
    words->cut = true;
    return true;
  }
  ssize_t length = callers_string(caller, address, text, room);
  if (length < 0) return false;
  put(words, text, (size_t)length);
  return true;
}

bool words_read(pid_t caller, uint64_t address, struct words *words) {
  static char pieces[BATCH][PIECE];
  uint64_t pointers[BATCH];
  size_t lengths[BATCH];
  words_clear(words);
  while (address != 0 && !words->cut) {
    int count = read_pointers(caller, address, pointers);
    if (count < 0) return false;
    size_t used = 0;
    while (used < (size_t)count && pointers[used] != 0) used++;
    read_pieces(caller, pointers, used, pieces, lengths);
    for (size_t i = 0; i < used && !words->cut; i++) {
      if (lengths[i] != UNREAD) put(words, pieces[i], lengths[i]);
      else if (!read_long(caller, pointers[i], words)) return false;
    }
    if (used < (size_t)count) break;
    address += (uint64_t)count * sizeof *pointers;
  }
  return true;
}

struct told_words words_told(const struct words *words) {
  bool cut = words->length > WORDS_SHORT;
  return (struct told_words){words->text, cut ? WORDS_SHORT : words->length, cut || words->cut};
}
