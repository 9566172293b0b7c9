#define _GNU_SOURCE
#include "notify/starts/pending.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/channel.h"
#include "lib/clock.h"
#include "lib/commands.h"
#include "lib/failure.h"
#include "lib/fields.h"
#include "lib/frames.h"
#include "notify/notices.h"
#include "notify/starts/lineage.h"

/* Longest WAIT: a day. */
#define WAIT_MAX_MS 86400000
/* Pending starts per world; further starts are refused. */
#define WAITING_MAX 1024
/* Time during which a refusal also covers the same start repeated by the same process: long enough for a
   shell's search of PATH. */
#define AGAIN_MS 500

struct waiting {
  struct waiting *next;
  struct pending start;
  int64_t deadline;
  char *path;
  size_t words_length;
  bool words_cut;
  char words[];
};

static struct waiting *all;
static unsigned count;

bool pending_was_refused(const struct command *command, uint64_t mark) {
  return command->refused == mark && now_ms() - command->refused_at < AGAIN_MS;
}

bool pending_add(const struct pending *start, const char *path, struct told_words words) {
  struct waiting *waiting = count < WAITING_MAX ? malloc(sizeof *waiting + words.length) : NULL;
  char *copy = waiting == NULL ? NULL : strdup(path);
  if (copy == NULL) {
    free(waiting);
    return false;
  }
  *waiting = (struct waiting){.next = all,
                              .start = *start,
                              .deadline = now_ms() + FRAME_START_PATIENCE_MS,
                              .path = copy,
                              .words_length = words.length,
                              .words_cut = words.cut};
  memcpy(waiting->words, words.text, words.length);
  all = waiting;
  count++;
  return true;
}

static struct waiting **find(uint32_t command, uint64_t token) {
  struct waiting **link = &all;
  while (*link != NULL && ((*link)->start.command != command || (*link)->start.token != token)) link = &(*link)->next;
  return link;
}

static void release(struct waiting **link) {
  struct waiting *waiting = *link;
  *link = waiting->next;
  count--;
  free(waiting->path);
  free(waiting);
}

static void settle(struct waiting **link, bool may) {
  struct waiting *waiting = *link;
  const struct pending *start = &waiting->start;
  struct command *command = command_find(start->command);
  struct told_words told = {waiting->words, waiting->words_length, waiting->words_cut};
  if (command != NULL) {
    bool waits = notice_waits(start->listener, start->token);
    if (may && waits && !start->own) lineage_started(command, &start->caller, waiting->path, told);
    bool answered = notice_answer(start->listener, start->token, may ? 0 : EACCES);
    if (!may) {
      command->refused = start->mark;
      command->refused_at = now_ms();
    }
    if (answered && !may) lineage_refused(command, &start->caller, waiting->path, told);
  }
  release(link);
}

void pending_answer(const struct frame *frame) {
  struct field_reader reader = {frame->payload, frame->payload + frame->length};
  struct field field;
  uint64_t token = 0, may = 0, wait = 0, *value;
  int got;
  while ((got = field_next(&reader, &field)) > 0) {
    value = field.tag == TAG_TOKEN ? &token : field.tag == TAG_MAY ? &may : field.tag == TAG_WAIT ? &wait : NULL;
    if (value == NULL || !field_u64(&field, value)) fail_protocol("ANSWER: bad field");
  }
  if (got < 0 || token == 0 || may > 1 || wait > WAIT_MAX_MS) fail_protocol("ANSWER: malformed");
  struct waiting **link = find(frame->id, token);
  if (*link == NULL) return;
  if (wait > 0) (*link)->deadline = now_ms() + (int64_t)wait;
  else settle(link, may == 1);
}

int pending_check_deadlines(void) {
  int64_t next = -1, now = all == NULL ? 0 : now_ms();
  struct waiting **link = &all;
  while (*link != NULL) {
    int64_t left = (*link)->deadline - now;
    if (left <= 0) {
      settle(link, false);
      continue;
    }
    if (next < 0 || left < next) next = left;
    link = &(*link)->next;
  }
  return next < 0 ? -1 : (int)next + 1;
}

void pending_forget(int listener) {
  struct waiting **link = &all;
  while (*link != NULL) {
    if ((*link)->start.listener == listener) release(link);
    else link = &(*link)->next;
  }
}
