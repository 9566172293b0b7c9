#define _GNU_SOURCE
#include "files/edit.h"

#include <stdlib.h>
#include <string.h>

/* A part of the content to be replaced by a part of an edit. */
struct spot {
  size_t at, length, new_length;
};

static bool splice(struct bytes *content, struct spot spot, const uint8_t *new) {
  size_t length = content->length - spot.length + spot.new_length;
  if (length > CONTENT_MAX) return false;
  uint8_t *data = malloc(length + 1);
  if (data == NULL) return false;
  memcpy(data, content->data, spot.at);
  if (spot.new_length > 0) memcpy(data + spot.at, new, spot.new_length);
  memcpy(data + spot.at + spot.new_length, content->data + spot.at + spot.length, content->length - spot.at - spot.length);
  free(content->data);
  content->data = data;
  content->length = length;
  return true;
}

/* For one place, overlapping ones count too: `}}` stands twice in `}}}`. */
static uint64_t occurrences(const struct bytes *content, const struct edit *edit) {
  uint64_t count = 0;
  uint64_t step = (edit->flags & EDIT_ALL) != 0 ? edit->old_length : 1;
  const uint8_t *at = content->data, *end = content->data + content->length;
  while ((at = memmem(at, (size_t)(end - at), edit->old, edit->old_length)) != NULL) {
    count++;
    at += step;
  }
  return count;
}

static bool replace_text(struct bytes *content, const struct edit *edit, uint64_t *replaced, struct fault *fault) {
  uint64_t count = edit->old_length == 0 ? 0 : occurrences(content, edit);
  fault->count = count;
  if (count == 0) return fault_at(fault, "no_match", 0, "");
  if (count > 1 && (edit->flags & EDIT_ALL) == 0) return fault_at(fault, "many", 0, "");
  size_t kept = content->length - (size_t)count * edit->old_length;
  if (edit->new_length > 0 && count > (CONTENT_MAX - kept) / edit->new_length) return fault_at(fault, "too_large", 0, "");
  size_t length = kept + (size_t)count * edit->new_length;
  uint8_t *data = malloc(length + 1), *to = data;
  if (data == NULL || length > CONTENT_MAX) {
    free(data);
    return fault_at(fault, "too_large", 0, "");
  }
  const uint8_t *from = content->data, *end = content->data + content->length;
  for (const uint8_t *at; (at = memmem(from, (size_t)(end - from), edit->old, edit->old_length)) != NULL;) {
    memcpy(to, from, (size_t)(at - from));
    to += at - from;
    if (edit->new_length > 0) memcpy(to, edit->new, edit->new_length);
    to += edit->new_length;
    from = at + edit->old_length;
  }
  memcpy(to, from, (size_t)(end - from));
  free(content->data);
  content->data = data;
  content->length = length;
  *replaced += count;
  return true;
}

/* Whether a hunk's old lines stand at `at`. A last line without its line end in the file matches one with. */
static bool lines_match(const struct bytes *content, size_t at, const struct edit *edit, struct spot *spot) {
  size_t left = content->length - at, want = edit->old_length;
  spot->at = at;
  spot->length = want;
  spot->new_length = edit->new_length;
  if (want > 0 && want == left + 1 && edit->old[want - 1] == '\n' && memcmp(content->data + at, edit->old, left) == 0) {
    spot->length = left;
    if (spot->new_length > 0 && edit->new[spot->new_length - 1] == '\n') spot->new_length--;
    return true;
  }
  /* A new line goes between lines: behind a last one without its end it would become a part of that. */
  if (want == 0 && at > 0 && content->data[at - 1] != '\n') return false;
  if (want > left || memcmp(content->data + at, edit->old, want) != 0) return false;
  /* Lines without a line end are the file's last. */
  return want == 0 || edit->old[want - 1] == '\n' || want == left;
}

static size_t line_after(const struct bytes *content, size_t at) {
  const uint8_t *end = memchr(content->data + at, '\n', content->length - at);
  return end == NULL ? content->length : (size_t)(end - content->data) + 1;
}

/* Replaces whole lines behind `*from`: at the line that the hunk names, else at the only place where they stand. */
static bool replace_lines(struct bytes *content, const struct edit *edit, size_t *from, int64_t *moved, struct fault *fault) {
  struct spot spot, found = {0};
  uint64_t count = 0, line = 1;
  uint64_t wanted = edit->line == 0 || (int64_t)edit->line + *moved < 1 ? 0 : (uint64_t)((int64_t)edit->line + *moved);
  for (size_t at = 0;; at = line_after(content, at), line++) {
    bool named = wanted == line;
    if (at >= *from && (edit->old_length > 0 || named) && lines_match(content, at, edit, &spot)) {
      count = named ? 1 : count + 1;
      found = spot;
      if (named || (edit->flags & EDIT_FIRST) != 0) break;
    }
    if (at == content->length) break;
  }
  fault->count = count;
  if (count == 0) return fault_at(fault, "no_match", 0, "");
  if (count > 1) return fault_at(fault, "many", 0, "");
  if (!splice(content, found, edit->new)) return fault_at(fault, "too_large", 0, "");
  *from = found.at + found.new_length;
  for (size_t i = 0; i < edit->new_length; i++) *moved += edit->new[i] == '\n';
  for (size_t i = 0; i < edit->old_length; i++) *moved -= edit->old[i] == '\n';
  return true;
}

bool edit_apply(struct bytes *content, const struct edit *edits, int count, uint64_t *replaced, struct fault *fault) {
  size_t from = 0;
  int64_t moved = 0;
  for (int i = 0; i < count; i++) {
    bool hunk = (edits[i].flags & EDIT_HUNK) != 0;
    bool done = hunk ? replace_lines(content, &edits[i], &from, &moved, fault) : replace_text(content, &edits[i], replaced, fault);
    fault->edit = i;
    if (!done) return false;
    if (hunk) *replaced += 1;
  }
  return true;
}
