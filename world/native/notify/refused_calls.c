#include "notify/refused_calls.h"

#include <linux/audit.h>
#include <stdlib.h>

#include "lib/channel.h"
#include "lib/commands.h"
#include "lib/fields.h"
#include "lib/frames.h"

/* Factor between reports: a program that repeats a call for ever costs ten frames. */
#define GROWTH 100

#if defined(__x86_64__)
#define NATIVE_AUDIT AUDIT_ARCH_X86_64
#define FOREIGN_BIT 0x40000000 /* __X32_SYSCALL_BIT */
#elif defined(__aarch64__)
#define NATIVE_AUDIT AUDIT_ARCH_AARCH64
#define FOREIGN_BIT 0
#endif

struct hit {
  struct seccomp_data last;
  int refused;
  uint64_t count;
  uint64_t told;
};

struct refused_calls {
  int used;
  struct hit list[FRAME_MAX_HITS];
};

static bool is_foreign(const struct seccomp_data *call) {
  return call->arch != NATIVE_AUDIT || (call->nr & FOREIGN_BIT) != 0;
}

/* Calls of a foreign ABI are all refused, so they count as a single kind per architecture: the filter's table
   does not know their numbers. */
static bool is_same(const struct hit *hit, const struct seccomp_data *call, int refused) {
  if (hit->refused != refused || hit->last.arch != call->arch) return false;
  return is_foreign(call) ? is_foreign(&hit->last) : hit->last.nr == call->nr;
}

static struct hit *find_or_add(struct refused_calls *hits, const struct seccomp_data *call, int refused) {
  for (int i = 0; i < hits->used; i++) {
    if (is_same(&hits->list[i], call, refused)) return &hits->list[i];
  }
  if (hits->used == FRAME_MAX_HITS) return NULL;
  struct hit *hit = &hits->list[hits->used++];
  *hit = (struct hit){.refused = refused};
  return hit;
}

static void tell(const struct command *command, struct hit *hit) {
  uint8_t payload[5 * FIELD_HEADER_SIZE + 4 * 8 + sizeof hit->last.args];
  struct field_writer writer = {.data = payload, .capacity = sizeof payload};
  field_put_u64(&writer, TAG_CALL, (uint32_t)hit->last.nr);
  field_put_u64(&writer, TAG_AUDIT, hit->last.arch);
  field_put(&writer, TAG_ARGUMENTS, hit->last.args, sizeof hit->last.args);
  field_put_u64(&writer, TAG_HITS, hit->count);
  field_put_u64(&writer, TAG_REFUSED, (uint64_t)hit->refused);
  channel_send(FRAME_VIOLATION, command->id, payload, writer.length);
  hit->told = hit->count;
}

bool refused_calls_note(struct command *command, const struct seccomp_data *call, int refused) {
  if (command->refused_calls == NULL) command->refused_calls = calloc(1, sizeof *command->refused_calls);
  if (command->refused_calls == NULL) return false;
  struct hit *hit = find_or_add(command->refused_calls, call, refused);
  if (hit == NULL) return false;
  hit->last = *call;
  hit->count++;
  if (hit->count / GROWTH >= hit->told) tell(command, hit);
  return true;
}

void refused_calls_flush(struct command *command) {
  for (int i = 0; command->refused_calls != NULL && i < command->refused_calls->used; i++) {
    struct hit *hit = &command->refused_calls->list[i];
    if (hit->count > hit->told) tell(command, hit);
  }
}
