#define _GNU_SOURCE
#include "notify/starts/gates.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/channel.h"
#include "lib/failure.h"
#include "lib/fields.h"
#include "lib/frames.h"
#include "lib/wildcards.h"
#include "notify/starts/originals.h"

struct gate {
  uint64_t number;
  unsigned references;
  bool all, refuses;
  size_t count, patterns; /* names; the patterns with a star come last */
  char **names; /* sorted; folders follow, and the texts share the allocation */
  size_t folders;
  struct originals originals;
};

static struct gate *last;

static int by_bytes(const void *one, const void *other) {
  return strcmp(*(char *const *)one, *(char *const *)other);
}

/* Sorts patterns with a star last. */
static int by_kind(const void *one, const void *other) {
  int stars = (strchr(*(char *const *)one, '*') != NULL) - (strchr(*(char *const *)other, '*') != NULL);
  return stars != 0 ? stars : by_bytes(one, other);
}

void gate_release(struct gate *gate) {
  if (gate == NULL || --gate->references > 0) return;
  originals_free(&gate->originals);
  free(gate->names);
  free(gate);
}

/* Returns the error, or NULL. */
static const char *count_names(const struct frame *frame, struct gate *gate, size_t *bytes) {
  struct field_reader reader = {frame->payload, frame->payload + frame->length};
  struct field field;
  uint64_t value;
  int got;
  while ((got = field_next(&reader, &field)) > 0) {
    if (field.tag == TAG_ASKED_NAME || field.tag == TAG_FOLDER) {
      if (!field_is_string(&field, 1)) return "GATE: bad ASKED_NAME or FOLDER";
      if (field.tag == TAG_FOLDER && field.data[0] != '/') return "GATE: a FOLDER is no absolute path";
      if (field.tag == TAG_FOLDER) gate->folders++;
      else gate->count++;
      *bytes += field.length + 1;
    } else if (field.tag == TAG_ASKS_ALL || field.tag == TAG_REFUSES) {
      if (!field_u64(&field, &value) || value != 1) return "GATE: bad flag";
      if (field.tag == TAG_ASKS_ALL) gate->all = true;
      else gate->refuses = true;
    } else {
      return "GATE: unknown tag";
    }
  }
  return got < 0 ? "GATE: malformed field" : NULL;
}

static void copy_names(const struct frame *frame, struct gate *gate) {
  struct field_reader reader = {frame->payload, frame->payload + frame->length};
  struct field field;
  char *at = (char *)(gate->names + gate->count + gate->folders);
  size_t names = 0, folders = gate->count;
  while (field_next(&reader, &field) > 0) {
    if (field.tag != TAG_ASKED_NAME && field.tag != TAG_FOLDER) continue;
    gate->names[field.tag == TAG_FOLDER ? folders++ : names++] = at;
    memcpy(at, field.data, field.length);
    at[field.length] = 0;
    at += field.length + 1;
  }
  qsort(gate->names, gate->count, sizeof *gate->names, by_kind);
  while (gate->patterns < gate->count && strchr(gate->names[gate->count - gate->patterns - 1], '*') != NULL) {
    gate->patterns++;
  }
}

void gate_define(const struct frame *frame) {
  struct gate *gate = calloc(1, sizeof *gate);
  size_t bytes = 0;
  if (frame->id == 0) fail_protocol("GATE: has no number");
  if (gate == NULL) fail_world("gate", "", ENOMEM);
  gate->number = frame->id;
  gate->references = 1;
  const char *wrong = count_names(frame, gate, &bytes);
  if (wrong != NULL) fail_protocol(wrong);
  gate->names = malloc((gate->count + gate->folders) * sizeof *gate->names + bytes + 1);
  if (gate->names == NULL) fail_world("gate", "", ENOMEM);
  copy_names(frame, gate);
  gate_release(last);
  last = gate;
}

uint64_t gate_last(void) {
  return last == NULL ? 0 : last->number;
}

struct gate *gate_take(void) {
  last->references++;
  return last;
}

bool gate_asks_all(const struct gate *gate) {
  return gate->all;
}

bool gate_refuses(const struct gate *gate) {
  return gate->refuses;
}

bool gate_names(const struct gate *gate, const char *path) {
  const char *slash = strrchr(path, '/');
  const char *name = slash == NULL ? path : slash + 1;
  size_t plain = gate->count - gate->patterns;
  if (bsearch(&name, gate->names, plain, sizeof *gate->names, by_bytes) != NULL) return true;
  for (size_t i = plain; i < gate->count; i++) {
    if (wildcards_match(gate->names[i], strchr(gate->names[i], '/') == NULL ? name : path)) return true;
  }
  return false;
}

static void look(struct gate *gate) {
  originals_look(&gate->originals, &(struct wanted){.names = gate->names,
                                            .count = gate->count,
                                            .patterns = gate->patterns,
                                            .folders = gate->names + gate->count,
                                            .folder_count = gate->folders});
}

const char *gate_same(struct gate *gate, const struct image *image, size_t *at) {
  look(gate);
  const struct original *original = originals_next(&gate->originals, image, at);
  while (original != NULL && original->loader) original = originals_next(&gate->originals, image, at);
  return original == NULL ? NULL : strrchr(original->path, '/') + 1;
}

bool gate_loads(struct gate *gate, const struct image *image) {
  size_t at = 0;
  const struct original *original;
  look(gate);
  while ((original = originals_next(&gate->originals, image, &at)) != NULL) {
    if (original->loader) return true;
  }
  return false;
}
