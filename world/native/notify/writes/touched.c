#define _GNU_SOURCE
#include "notify/writes/touched.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "lib/channel.h"
#include "lib/commands.h"
#include "lib/failure.h"
#include "lib/frames.h"
#include "lib/siphash.h"

/* Size of the buffer for unsent records; the longest record fits. */
#define BUFFER (16 * 1024)
#define SLOTS_FIRST 256
/* Names remembered for all commands of a world: eight bytes each, in half-empty tables. */
#define NAMES_MAX (1U << 20)

/* A slot holds the hash of a path; the lowest byte says what was done to the path. 0: empty slot. */
#define HOW_BITS 0xffU

enum before { ABSENT, PRESENT, TOLD, MOVED };

/* Moves reported per command: the broker goes through all moves for each name. */
#define MOVES_MAX 256
/* Moves in progress at once: one for each thread that moves folders. */
#define PENDING_MAX 8

struct move {
  pid_t caller; /* 0: free slot */
  ino_t inode;
  bool exchanged;
  size_t from_length, to_length;
  char *from; /* `from` and `to`, each with its NUL */
};

struct touched {
  uint64_t *slots;
  size_t size, used;
  size_t told, moves;
  struct move pending[PENDING_MAX];
  uint64_t unread, untold;
  size_t length;
  uint8_t *buffer; /* NULL until the first name */
};

static uint64_t key[2];
static size_t names; /* of all commands */

bool touched_begin(struct command *command) {
  if (command->touched != NULL) return true;
  if (key[0] == 0 && getrandom(key, sizeof key, 0) != sizeof key) fail_world("touched", "getrandom", errno);
  command->touched = calloc(1, sizeof *command->touched);
  return command->touched != NULL;
}

/* Finds the slot of a hash, or the empty slot to put the hash in. */
static uint64_t *slot_of(uint64_t *slots, size_t size, uint64_t hash) {
  size_t at = (size_t)(hash >> 8) & (size - 1);
  while (slots[at] != 0 && ((slots[at] ^ hash) & ~(uint64_t)HOW_BITS) != 0) at = (at + 1) & (size - 1);
  return &slots[at];
}

static bool grow(struct touched *touched) {
  size_t size = touched->size == 0 ? SLOTS_FIRST : 2 * touched->size;
  uint64_t *slots = calloc(size, sizeof *slots);
  if (slots == NULL) return false;
  for (size_t i = 0; i < touched->size; i++) {
    if (touched->slots[i] != 0) *slot_of(slots, size, touched->slots[i]) = touched->slots[i];
  }
  free(touched->slots);
  touched->slots = slots;
  touched->size = size;
  return true;
}

/* Adds `how` to a path's slot and returns the earlier flags; -1 when the table is full. */
static int remember(struct touched *touched, const struct lookup *place, unsigned how) {
  if (touched->buffer == NULL) touched->buffer = malloc(BUFFER);
  if (touched->buffer == NULL) return -1;
  if (2 * touched->used >= touched->size && !grow(touched)) return -1;
  uint64_t hash = siphash(key, place->path, place->length) & ~(uint64_t)HOW_BITS;
  uint64_t *slot = slot_of(touched->slots, touched->size, hash);
  int before = (int)(*slot & HOW_BITS);
  if (*slot == 0) {
    if (touched->told == FRAME_MAX_TOUCHED || names == NAMES_MAX) return -1;
    touched->told++;
    touched->used++;
    names++;
  }
  *slot = hash | (unsigned)before | how;
  return before;
}

static uint64_t nanoseconds(const struct timespec *time) {
  return (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec;
}

/* Reserves a record for a path and writes its header. */
static uint8_t *begin(struct command *command, unsigned how, enum before before, const char *path, size_t length) {
  struct touched *touched = command->touched;
  if (touched->length + TOUCHED_HEADER_SIZE + length > BUFFER) touched_flush(command);
  uint8_t *at = touched->buffer + touched->length;
  memset(at, 0, TOUCHED_HEADER_SIZE);
  write_u32(at, (uint32_t)length | how << 16 | (unsigned)before << 24);
  memcpy(at + TOUCHED_HEADER_SIZE, path, length);
  touched->length += TOUCHED_HEADER_SIZE + length;
  return at;
}

static void put(struct command *command, unsigned how, enum before before, const struct lookup *place) {
  const struct stat *stat = &place->stat;
  uint8_t *at = begin(command, how, before, place->path, place->length);
  if (before == PRESENT) {
    write_u32(at + 4, stat->st_mode);
    write_u64(at + 8, (uint64_t)stat->st_size);
    write_u64(at + 16, stat->st_ino);
    write_u64(at + 24, nanoseconds(&stat->st_mtim));
    write_u64(at + 32, nanoseconds(&stat->st_ctim));
  }
}

static void forget(struct move *move) {
  free(move->from);
  *move = (struct move){0};
}

/* After a move the same names stand for other files: forget them, so that each is reported again. */
static void tell_move(struct command *command, const struct move *move) {
  struct touched *touched = command->touched;
  begin(command, move->exchanged ? 1 : 0, MOVED, move->from, move->from_length + 1 + move->to_length);
  touched->moves++;
  names -= touched->used;
  touched->used = 0;
  memset(touched->slots, 0, touched->size * sizeof *touched->slots);
}

/* True once the mover's rename(2) has returned: the command ends (caller 0), the mover makes another call, or
   the mover is gone. A failed rename must be dropped then: another process may later rename the same
   names. */
static bool is_over(pid_t mover, pid_t caller) {
  return caller == 0 || caller == mover || (kill(mover, 0) < 0 && errno == ESRCH);
}

void touched_settle(struct command *command, pid_t caller) {
  struct touched *touched = command->touched;
  if (touched == NULL) return;
  for (int i = 0; i < PENDING_MAX; i++) {
    struct move *move = &touched->pending[i];
    if (move->caller == 0) continue;
    /* Check first: a rename that has returned by now is visible to the look-up. */
    bool over = is_over(move->caller, caller);
    bool moved = lookup_holds(move->from + move->from_length + 1, move->inode);
    if (moved) tell_move(command, move);
    if (moved || over) forget(move);
  }
}

void touched_move(struct command *command, pid_t caller, bool exchanged, const struct lookup *from,
                  const struct lookup *to) {
  struct touched *touched = command->touched;
  if (touched == NULL || command->exit_sent) return;
  struct move *move = touched->pending;
  while (move < touched->pending + PENDING_MAX && move->caller != 0) move++;
  bool room = move < touched->pending + PENDING_MAX && touched->moves < MOVES_MAX;
  char *both = room ? malloc(from->length + to->length + 2) : NULL;
  if (both == NULL) {
    touched->untold++;
    return;
  }
  memcpy(both, from->path, from->length + 1);
  memcpy(both + from->length + 1, to->path, to->length + 1);
  *move = (struct move){caller, from->stat.st_ino, exchanged, from->length, to->length, both};
}

void touched_note(struct command *command, unsigned how, const struct lookup *place) {
  struct touched *touched = command->touched;
  if (touched == NULL || command->exit_sent) return;
  int known = remember(touched, place, how);
  if (known < 0) {
    touched->untold++;
    return;
  }
  if (known != 0 && (how & ~(unsigned)known) == 0) return;
  put(command, how, known != 0 ? TOLD : place->exists ? PRESENT : ABSENT, place);
}

void touched_unread(struct command *command) {
  if (command->touched != NULL) command->touched->unread++;
}

void touched_flush(struct command *command) {
  struct touched *touched = command->touched;
  if (touched == NULL || touched->length == 0) return;
  channel_send(FRAME_TOUCHED, command->id, touched->buffer, touched->length);
  touched->length = 0;
}

void touched_put(const struct command *command, struct field_writer *writer) {
  const struct touched *touched = command->touched;
  if (touched == NULL) return;
  field_put_u64(writer, TAG_RECORDED, 1);
  if (touched->unread > 0) field_put_u64(writer, TAG_UNREAD, touched->unread);
  if (touched->untold > 0) field_put_u64(writer, TAG_UNTOLD, touched->untold);
}

void touched_end(struct command *command) {
  if (command->touched == NULL) return;
  names -= command->touched->used;
  for (int i = 0; i < PENDING_MAX; i++) forget(&command->touched->pending[i]);
  free(command->touched->slots);
  free(command->touched->buffer);
  free(command->touched);
  command->touched = NULL;
}
