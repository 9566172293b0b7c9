#define _GNU_SOURCE
#include "notify/writes/refused_writes.h"

#include <stdlib.h>
#include <string.h>

#include "lib/channel.h"
#include "lib/commands.h"
#include "lib/fields.h"
#include "lib/frames.h"

struct refused_writes {
  unsigned count;
  uint64_t told[FRAME_MAX_REFUSED_WRITES]; /* hashes; forging a collision hides the forger's own line */
};

/* FNV-1a, 64 bits. */
static uint64_t hash_of(int error, const char *path) {
  uint64_t hash = 0xcbf29ce484222325U ^ (uint64_t)error;
  for (; *path != 0; path++) hash = (hash ^ (uint8_t)*path) * 0x100000001b3U;
  return hash;
}

/* False: already reported, or the table is full. */
static bool remember(struct refused_writes *all, uint64_t hash) {
  for (unsigned i = 0; i < all->count; i++) {
    if (all->told[i] == hash) return false;
  }
  if (all->count == FRAME_MAX_REFUSED_WRITES) return false;
  all->told[all->count++] = hash;
  return true;
}

void refused_writes_tell(struct command *command, const struct lookup *place) {
  static uint8_t payload[2 * FIELD_HEADER_SIZE + sizeof place->refused_path + sizeof(uint64_t)];
  struct field_writer writer = {.data = payload, .capacity = sizeof payload};
  if (command->exit_sent) return;
  if (command->refused_writes == NULL) command->refused_writes = calloc(1, sizeof *command->refused_writes);
  if (command->refused_writes == NULL) return;
  if (!remember(command->refused_writes, hash_of(place->refused, place->refused_path))) return;
  field_put_string(&writer, TAG_PATH, place->refused_path);
  field_put_u64(&writer, TAG_ERRNO, (uint64_t)place->refused);
  channel_send(FRAME_REFUSED_WRITE, command->id, payload, writer.length);
}

void refused_writes_end(struct command *command) {
  free(command->refused_writes);
  command->refused_writes = NULL;
}
