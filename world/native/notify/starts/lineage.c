#define _GNU_SOURCE
#include "notify/starts/lineage.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/callers.h"
#include "lib/channel.h"
#include "lib/commands.h"
#include "lib/frames.h"
#include "notify/starts/pidfds.h"

/* Size of the buffer for unsent records; the longest record fits. */
#define BUFFER (16 * 1024)
/* Longest time that records wait in the buffer. */
#define OLD_MS 200
/* Ancestors searched for a reported program: forks without execve stand between. */
#define FORKS_MAX 64

enum kind { STARTED = 1, REFUSED, ENDED };
enum flag { CUT = 1, REPLACED = 2, STATUS_KNOWN = 4 };

struct lineage {
  uint32_t programs; /* number of the last reported program */
  uint32_t lives;
  uint64_t untold;
  int64_t since; /* when the buffer got its first byte */
  size_t length;
  uint8_t *buffer;
};

static bool began;

static int64_t clock_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

bool lineage_begin(struct command *command) {
  if (command->lineage != NULL) return true;
  pidfds_open();
  began = true;
  command->lineage = calloc(1, sizeof *command->lineage);
  return command->lineage != NULL;
}

static void flush(struct command *command) {
  struct lineage *lineage = command->lineage;
  if (lineage->length == 0) return;
  channel_send(FRAME_PROGRAMS, command->id, lineage->buffer, lineage->length);
  lineage->length = 0;
}

static uint8_t *begin(struct command *command, enum kind kind, unsigned flags, size_t length) {
  struct lineage *lineage = command->lineage;
  if (lineage->buffer == NULL) lineage->buffer = malloc(BUFFER);
  if (lineage->buffer == NULL) return NULL;
  if (lineage->length + PROGRAM_HEADER_SIZE + length > BUFFER) flush(command);
  if (lineage->length == 0) lineage->since = clock_ns(CLOCK_MONOTONIC);
  uint8_t *at = lineage->buffer + lineage->length;
  memset(at, 0, PROGRAM_HEADER_SIZE);
  write_u32(at, (uint32_t)(PROGRAM_HEADER_SIZE + length));
  at[4] = (uint8_t)kind;
  at[5] = (uint8_t)flags;
  write_u64(at + 24, (uint64_t)clock_ns(CLOCK_REALTIME));
  lineage->length += PROGRAM_HEADER_SIZE + length;
  return at;
}

static void put_end(struct command *command, uint32_t number, unsigned flags, uint32_t status) {
  uint8_t *at = begin(command, ENDED, flags, 0);
  if (at == NULL) return;
  write_u32(at + 8, number);
  write_u32(at + 20, status);
}

/* Reports the end of a process and frees its slot. */
static void tell_end(int slot) {
  const struct tracked *life = pidfds_at(slot);
  struct command *command = command_find(life->command);
  uint32_t status = 0;
  if (command != NULL && command->lineage != NULL) {
    command->lineage->lives--;
    bool known = pidfds_status(slot, &status);
    if (!command->exit_sent) put_end(command, life->number, known ? STATUS_KNOWN : 0, status);
  }
  pidfds_forget(slot);
}

/* Finds the slot of a reported process, -1: not watched. A slot whose process ended unnoticed is freed first,
   because the pid may have been reused. */
static int live(pid_t pid) {
  int slot = pidfds_find(pid);
  if (slot < 0 || !pidfds_has_ended(slot)) return slot;
  tell_end(slot);
  return -1;
}

static void put_start(struct command *command, enum kind kind, const uint32_t numbers[3], const char *path,
                      struct told_words words) {
  size_t path_length = strlen(path);
  uint8_t *at = begin(command, kind, words.cut ? CUT : 0, path_length + words.length);
  if (at == NULL) return;
  at[6] = (uint8_t)path_length;
  at[7] = (uint8_t)(path_length >> 8);
  for (int i = 0; i < 3; i++) write_u32(at + 8 + 4 * i, numbers[i]);
  memcpy(at + PROGRAM_HEADER_SIZE, path, path_length);
  memcpy(at + PROGRAM_HEADER_SIZE + path_length, words.text, words.length);
  if (words.length > 0) at[PROGRAM_HEADER_SIZE + path_length + words.length - 1] = 0;
}

static void tell_ended(void) {
  int ended[PIDFDS_YOUNG];
  int count = pidfds_look(ended);
  for (int i = 0; i < count; i++) tell_end(ended[i]);
}

/* Finds the program that this process runs or was forked from. 0: the command itself. */
static uint32_t parent_of(const struct caller *caller) {
  struct caller above = *caller;
  for (int i = 0; i < FORKS_MAX && above.pid > 1; i++) {
    int slot = live(above.pid);
    if (slot >= 0) return pidfds_at(slot)->number;
    if (i > 0 && !callers_identify(above.pid, &above)) break;
    above.pid = above.parent;
  }
  return 0;
}

/* False: no further program of this command is reported. */
static bool counts(struct command *command) {
  struct lineage *lineage = command->lineage;
  if (lineage == NULL || command->exit_sent) return false;
  if (lineage->programs < FRAME_MAX_PROGRAMS && channel_has_room()) return true;
  lineage->untold++;
  return false;
}

void lineage_started(struct command *command, const struct caller *caller, const char *path,
                     struct told_words words) {
  if (!counts(command)) return;
  tell_ended();
  uint32_t parent = parent_of(caller);
  uint32_t number = ++command->lineage->programs;
  put_start(command, STARTED, (uint32_t[]){number, parent, (uint32_t)caller->pid}, path, words);
  int slot = live(caller->pid);
  if (slot >= 0) {
    /* execve replaces the program of a watched process: both share one end. */
    put_end(command, pidfds_at(slot)->number, REPLACED, 0);
    pidfds_at(slot)->number = number;
  } else if (pidfds_add(caller->pid, command->id, number) >= 0) {
    command->lineage->lives++;
  }
}

void lineage_refused(struct command *command, const struct caller *caller, const char *path,
                     struct told_words words) {
  if (!counts(command)) return;
  uint32_t number = ++command->lineage->programs;
  put_start(command, REFUSED, (uint32_t[]){number, parent_of(caller), (uint32_t)caller->pid}, path, words);
}

/* The event may concern an earlier process in the same slot. */
void lineage_hear(uint32_t slot) {
  if (pidfds_at((int)slot)->pid != 0 && pidfds_has_ended((int)slot)) tell_end((int)slot);
}

void lineage_settle(struct command *command) {
  struct lineage *lineage = command->lineage;
  if (lineage == NULL) return;
  tell_ended();
  for (int slot = 0; lineage->lives > 0 && (slot = pidfds_of(command->id, slot)) >= 0; slot++) {
    if (pidfds_has_ended(slot)) tell_end(slot);
  }
  flush(command);
}

int lineage_flush_old(void) {
  int64_t next = -1;
  if (!began) return -1;
  if (pidfds_look_in() == 0) tell_ended();
  int64_t now = clock_ns(CLOCK_MONOTONIC);
  for (struct command *command = command_after(NULL); command != NULL; command = command_after(command)) {
    struct lineage *lineage = command->lineage;
    if (lineage == NULL || lineage->length == 0) continue;
    int64_t left = lineage->since + OLD_MS * (int64_t)1000000 - now;
    if (left <= 0) flush(command);
    else if (next < 0 || left < next) next = left;
  }
  int look = pidfds_look_in(), tell = next < 0 ? -1 : (int)(next / 1000000) + 1;
  return look >= 0 && (tell < 0 || look < tell) ? look : tell;
}

void lineage_put(const struct command *command, struct field_writer *writer) {
  const struct lineage *lineage = command->lineage;
  if (lineage != NULL && lineage->untold > 0) field_put_u64(writer, TAG_UNTOLD_PROGRAMS, lineage->untold);
}

void lineage_end(struct command *command) {
  if (command->lineage == NULL) return;
  for (int slot = 0; command->lineage->lives > 0 && (slot = pidfds_of(command->id, slot)) >= 0; slot++) {
    pidfds_forget(slot);
    command->lineage->lives--;
  }
  free(command->lineage->buffer);
  free(command->lineage);
  command->lineage = NULL;
}
