#define _GNU_SOURCE
#include "deny/rules.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "lib/failure.h"

#define RULES_MAX 8192
#define SEGMENTS_MAX 256
#define BUCKETS 1024

enum kind { LITERAL = 'L', GLOB = 'G', ANY_DEPTH = 'D', TREE = 'T' };

struct segment {
  enum kind kind;
  size_t length;
  char *text;
  const char *tail; /* literal end of a glob: a quick comparison that most names fail */
  size_t tail_length;
};

struct rule {
  unsigned denies;
  uint16_t count;
  struct segment *segments;
};

static struct rule rules[RULES_MAX];
static uint16_t rule_count;
static struct rule_states *known[BUCKETS];
/* The set under construction: each rule occurs at most once for each of its segments. */
static struct rule_state draft[RULES_MAX];

static void *must_allocate(size_t size) {
  void *memory = calloc(1, size);
  if (memory == NULL) fail_world("rules", "denied names", ENOMEM);
  return memory;
}

static bool is_depth(const struct segment *segment) {
  return segment->kind == ANY_DEPTH || segment->kind == TREE;
}

static bool is_kind(char letter) {
  return letter == LITERAL || letter == GLOB || letter == ANY_DEPTH || letter == TREE;
}

/* TREE skips node_modules (a hundred thousand entries beside ten thousand of the project) and git folders
   (nothing but objects). */
static bool goes_deeper(const struct segment *segment, const char *name, size_t length) {
  if (segment->kind != TREE) return true;
  if (length >= 4 && memcmp(name + length - 4, ".git", 4) == 0) return false;
  return strcmp(name, "node_modules") != 0;
}

static void find_tail(struct segment *segment) {
  segment->tail = segment->text + segment->length;
  while (segment->tail > segment->text && strchr("*?[]\\", segment->tail[-1]) == NULL) segment->tail--;
  segment->tail_length = (size_t)(segment->text + segment->length - segment->tail);
}

static const char *add_segment(struct rule *rule, const char *part, size_t length) {
  if (rule->count == SEGMENTS_MAX) return "DENY: too many segments";
  struct segment *segment = &rule->segments[rule->count++];
  if (!is_kind(part[0])) return "DENY: bad segment";
  segment->kind = (enum kind)part[0];
  segment->length = length - 1;
  if (is_depth(segment) != (segment->length == 0)) return "DENY: bad segment";
  segment->text = must_allocate(length);
  memcpy(segment->text, part + 1, segment->length);
  find_tail(segment);
  return NULL;
}

const char *rules_add(const uint8_t *data, size_t length) {
  static const char KINDS[] = "rwhsgc";
  const char *text = (const char *)data;
  if (length < 3 || text[1] != 0) return "DENY: too short";
  const char *kind = memchr(KINDS, text[0], sizeof KINDS - 1);
  if (kind == NULL) return "DENY: unknown kind";
  if (rule_count == RULES_MAX) return "DENY: too many";
  struct rule *rule = &rules[rule_count++];
  rule->denies = text[0] == 'c' ? DENY_SEAL | DENY_ASKS : 1U << (kind - KINDS);
  rule->segments = must_allocate(SEGMENTS_MAX * sizeof *rule->segments);
  for (size_t at = 2; at <= length;) {
    size_t size = strnlen(text + at, length - at);
    const char *wrong = size == 0 ? "DENY: empty segment" : add_segment(rule, text + at, size);
    if (wrong != NULL) return wrong;
    at += size + 1;
  }
  if (is_depth(&rule->segments[rule->count - 1])) return "DENY: ends with any depth";
  struct segment *fitting = realloc(rule->segments, rule->count * sizeof *rule->segments);
  if (fitting != NULL) rule->segments = fitting;
  return NULL;
}

static bool fits(const struct segment *segment, const char *name, size_t length) {
  if (segment->kind == LITERAL) return segment->length == length && memcmp(segment->text, name, length) == 0;
  if (length < segment->tail_length) return false;
  if (memcmp(name + length - segment->tail_length, segment->tail, segment->tail_length) != 0) return false;
  return fnmatch(segment->text, name, 0) == 0;
}

static uint32_t hash_of(const struct rule_state *at, uint32_t count) {
  uint32_t hash = 2166136261U; /* FNV-1a */
  for (uint32_t i = 0; i < count; i++) hash = (hash ^ at[i].rule ^ ((uint32_t)at[i].segment << 16)) * 16777619U;
  return hash % BUCKETS;
}

/* Returns the shared copy of the drafted set. */
static const struct rule_states *keep(uint32_t count) {
  if (count == 0) return NULL;
  uint32_t bucket = hash_of(draft, count);
  for (struct rule_states *each = known[bucket]; each != NULL; each = each->next) {
    if (each->count == count && memcmp(each->at, draft, count * sizeof *draft) == 0) return each;
  }
  struct rule_states *made = must_allocate(sizeof *made + count * sizeof *draft);
  memcpy(made->at, draft, count * sizeof *draft);
  made->count = count;
  for (uint32_t i = 0; i < count; i++) {
    made->listed |= rules[draft[i].rule].segments[draft[i].segment].kind != LITERAL;
    made->denies |= rules[draft[i].rule].denies;
  }
  made->next = known[bucket];
  known[bucket] = made;
  return made;
}

/* Adds a state. "Any depth" also matches zero folders, so the following segment is added right beside. */
static uint32_t put(uint32_t count, uint16_t rule, uint16_t segment) {
  for (;; segment++) {
    for (uint32_t i = count; i > 0 && draft[i - 1].rule == rule; i--) {
      if (draft[i - 1].segment == segment) return count;
    }
    if (count == RULES_MAX) fail_world("rules", "overlapping denied names", E2BIG);
    draft[count++] = (struct rule_state){rule, segment};
    if (!is_depth(&rules[rule].segments[segment])) return count;
  }
}

const struct rule_states *rules_begin(unsigned kinds) {
  uint32_t count = 0;
  for (uint16_t i = 0; i < rule_count; i++) {
    if ((rules[i].denies & kinds) != 0) count = put(count, i, 0);
  }
  return keep(count);
}

const struct rule_states *rules_step(const struct rule_states *from, const char *name, unsigned *matched) {
  size_t length = strlen(name);
  uint32_t count = 0;
  *matched = 0;
  for (uint32_t i = 0; i < from->count; i++) {
    const struct rule_state state = from->at[i];
    const struct rule *rule = &rules[state.rule];
    const struct segment *segment = &rule->segments[state.segment];
    if (is_depth(segment)) {
      if (goes_deeper(segment, name, length)) count = put(count, state.rule, state.segment);
      continue;
    }
    if (!fits(segment, name, length)) continue;
    if (state.segment + 1 == rule->count) *matched |= rule->denies;
    else count = put(count, state.rule, (uint16_t)(state.segment + 1));
  }
  return keep(count);
}

unsigned rules_match(const struct rule_states *from, const char *name) {
  size_t length = strlen(name);
  unsigned matched = 0;
  for (uint32_t i = 0; i < from->count; i++) {
    const struct rule *rule = &rules[from->at[i].rule];
    const struct segment *segment = &rule->segments[from->at[i].segment];
    if (from->at[i].segment + 1 == rule->count && fits(segment, name, length)) matched |= rule->denies;
  }
  return matched;
}

unsigned rules_through(const struct rule_states *from, const char *name) {
  size_t length = strlen(name);
  unsigned denies = 0;
  for (uint32_t i = 0; i < from->count; i++) {
    const struct rule *rule = &rules[from->at[i].rule];
    const struct segment *segment = &rule->segments[from->at[i].segment];
    bool folder = (segment->kind == LITERAL || segment->kind == GLOB) && from->at[i].segment + 1 < rule->count;
    if (folder && fits(segment, name, length)) denies |= rule->denies;
  }
  return denies;
}

bool rules_may_end(unsigned kinds, const char *name) {
  size_t length = strlen(name);
  for (uint16_t i = 0; i < rule_count; i++) {
    if ((rules[i].denies & kinds) != 0 && fits(&rules[i].segments[rules[i].count - 1], name, length)) return true;
  }
  return false;
}

const char *rules_next_end(unsigned kind, uint16_t *at) {
  while (*at < rule_count) {
    const struct rule *rule = &rules[(*at)++];
    const struct segment *last = &rule->segments[rule->count - 1];
    if ((rule->denies & kind) != 0 && last->kind == LITERAL) return last->text;
  }
  return NULL;
}

static const struct segment *segment_at(const struct rule_states *from, uint32_t number) {
  const struct rule_state state = from->at[number];
  return &rules[state.rule].segments[state.segment];
}

const char *rules_literal(const struct rule_states *from, uint32_t number) {
  const struct segment *segment = segment_at(from, number);
  if (segment->kind != LITERAL) return NULL;
  /* Every rule below the home begins with the same folders: enter each folder once, not once per rule. */
  for (uint32_t i = 0; i < number; i++) {
    const struct segment *before = segment_at(from, i);
    if (before->kind == LITERAL && before->length == segment->length && strcmp(before->text, segment->text) == 0) return NULL;
  }
  return segment->text;
}
