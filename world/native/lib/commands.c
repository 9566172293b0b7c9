#include "lib/commands.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define BUCKETS 256

static struct command *buckets[BUCKETS];
static uint64_t count;
static uint64_t most = COMMANDS_MAX;

void commands_fit(uint64_t descriptors, uint64_t more) {
  uint64_t each = DESCRIPTORS_EACH + more;
  uint64_t fitting = descriptors > DESCRIPTORS_OTHER ? (descriptors - DESCRIPTORS_OTHER) / each : 0;
  /* Reserved descriptors are upper bounds: a world with few descriptors still runs a single command. */
  if (fitting == 0) fitting = 1;
  if (fitting < most) most = fitting;
}

struct command *command_find(uint32_t id) {
  struct command *command = buckets[id % BUCKETS];
  while (command != NULL && command->id != id) command = command->next;
  return command;
}

struct command *command_add(uint32_t id) {
  if (count >= most) {
    errno = EAGAIN;
    return NULL;
  }
  struct command *command = calloc(1, sizeof *command);
  if (command == NULL) return NULL;
  command->id = id;
  command->outputs[0].fd = command->outputs[1].fd = -1;
  command->next = buckets[id % BUCKETS];
  buckets[id % BUCKETS] = command;
  count++;
  return command;
}

void command_remove(struct command *command) {
  struct command **link = &buckets[command->id % BUCKETS];
  while (*link != command) link = &(*link)->next;
  *link = command->next;
  for (int i = 0; i < 2; i++) {
    if (command->outputs[i].fd >= 0) close(command->outputs[i].fd);
  }
  free(command);
  count--;
}

struct command *command_after(const struct command *command) {
  if (command != NULL && command->next != NULL) return command->next;
  for (uint32_t i = command == NULL ? 0 : command->id % BUCKETS + 1; i < BUCKETS; i++) {
    if (buckets[i] != NULL) return buckets[i];
  }
  return NULL;
}
