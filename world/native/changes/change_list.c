#include "changes/change_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct change *change_add(struct change_list *list, char kind, const char *path) {
  size_t size = strlen(path) + 1;
  bool fits = list->count < CHANGES_MAX && list->bytes + size <= CHANGES_BYTES_MAX;
  struct change *change = fits ? calloc(1, sizeof *change + size) : NULL;
  if (change == NULL) {
    list->full = true;
    return NULL;
  }
  memcpy(change->path, path, size);
  change->kind = kind;
  change->next = list->first;
  list->first = change;
  list->count++;
  list->bytes += size;
  return change;
}

/* strcmp compares as unsigned bytes (C11 7.24.4). */
static int by_path(const void *one, const void *other) {
  const struct change *const *left = one, *const *right = other;
  return strcmp((*left)->path, (*right)->path);
}

struct change **change_sorted(const struct change_list *list) {
  struct change **sorted = list->count == 0 ? NULL : calloc(list->count, sizeof *sorted);
  if (sorted == NULL) return NULL;
  uint32_t at = 0;
  for (struct change *change = list->first; change != NULL; change = change->next) sorted[at++] = change;
  qsort(sorted, list->count, sizeof *sorted, by_path);
  return sorted;
}

static const char *word_of(char kind) {
  switch (kind) {
    case CHANGE_WRITE:
      return "write";
    case CHANGE_MOD:
      return "mod";
    case CHANGE_DELETE:
      return "delete";
    default:
      return "dir";
  }
}

void change_hash(struct change *const *sorted, uint32_t count, char *hex) {
  struct sha256 hash;
  char mode[16];
  sha256_begin(&hash);
  for (uint32_t i = 0; i < count; i++) {
    const struct change *change = sorted[i];
    const char *word = word_of(change->kind);
    /* Each field ends with its NUL, so different lists never have the same bytes. */
    sha256_add(&hash, word, strlen(word) + 1);
    sha256_add(&hash, change->path, strlen(change->path) + 1);
    int length = snprintf(mode, sizeof mode, "%o", (unsigned)change->after);
    sha256_add(&hash, mode, (size_t)length + 1);
    if (change->hashed) sha256_add(&hash, change->content, SHA256_HEX);
    sha256_add(&hash, "\n", 1);
  }
  sha256_end(&hash, hex);
}

void change_list_free(struct change_list *list) {
  for (struct change *change = list->first, *next; change != NULL; change = next) {
    next = change->next;
    free(change);
  }
  *list = (struct change_list){0};
}
