#define _GNU_SOURCE
#include "notify/starts/own_program.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fields.h"
#include "lib/frames.h"
#include "lib/jobs.h"

struct own_program {
  const char *cwd, *search, *next; /* rest of PATH to search, NULL at the end */
  size_t words_length;
  char *words;
  char text[]; /* storage of the strings above, each with its NUL */
};

static const char *keep(char **at, const uint8_t *data, size_t length) {
  char *kept = *at;
  memcpy(kept, data, length);
  kept[length] = 0;
  *at += length + 1;
  return kept;
}

bool own_program_counts(const uint8_t *payload, size_t length) {
  static const char shell[] = "/bin/sh";
  struct field_reader reader = {(uint8_t *)(uintptr_t)payload, (uint8_t *)(uintptr_t)payload + length};
  struct field field;
  while (field_next(&reader, &field) > 0) {
    if (field.tag == TAG_ARG) return field.length != strlen(shell) || memcmp(field.data, shell, field.length) != 0;
  }
  return true;
}

struct own_program *own_program_keep(const uint8_t *payload, size_t length) {
  struct field_reader reader = {(uint8_t *)(uintptr_t)payload, (uint8_t *)(uintptr_t)payload + length};
  struct field field;
  struct own_program *own = malloc(sizeof *own + length + sizeof PROGRAM_PATH + 2);
  if (own == NULL) return NULL;
  *own = (struct own_program){.cwd = "/", .search = PROGRAM_PATH};
  char *at = own->text;
  struct field_reader again = reader;
  while (field_next(&reader, &field) > 0) {
    bool is_path = field.tag == TAG_ENV && field.length >= 5 && memcmp(field.data, "PATH=", 5) == 0;
    if (field.tag == TAG_CWD) own->cwd = keep(&at, field.data, field.length);
    if (is_path) own->search = keep(&at, field.data + 5, field.length - 5);
  }
  own->words = at;
  while (field_next(&again, &field) > 0) {
    if (field.tag == TAG_ARG) keep(&at, field.data, field.length);
  }
  own->words_length = (size_t)(at - own->words);
  return own;
}

void own_program_release(struct own_program *own) {
  free(own);
}

void own_program_begin(struct own_program *own) {
  own->next = own->search;
}

/* Builds the next candidate path, as program_execute does. False at the end of PATH. */
static bool next_path(struct own_program *own, char path[2 * PATH_MAX]) {
  while (own->next != NULL) {
    const char *folder = own->next;
    size_t size = strcspn(folder, ":");
    bool named = strchr(own->words, '/') != NULL;
    own->next = named || folder[size] == 0 ? NULL : folder + size + 1;
    if (!named && size + strlen(own->words) + 2 > PATH_MAX) continue;
    if (named) snprintf(path, 2 * PATH_MAX, "%s", own->words);
    else snprintf(path, 2 * PATH_MAX, "%.*s%s%s", (int)size, folder, size > 0 ? "/" : "", own->words);
    return true;
  }
  return false;
}

bool own_program_next(struct own_program *own, struct target *target, pid_t runner, enum image_found *found) {
  char path[2 * PATH_MAX];
  if (!next_path(own, path)) return false;
  *found = target_begin(target, runner, own->cwd, path);
  const char *word = own->words;
  while (*found != IMAGE_MISSING && word < own->words + own->words_length) {
    words_add(&target->words[0], word);
    word += strlen(word) + 1;
  }
  return true;
}
