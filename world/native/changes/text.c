#define _GNU_SOURCE
#include "changes/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NUMBERS_MAX 512
#define DRAFT "draft"

void *held_grow(void *data, size_t size) {
  void *grown = realloc(data, size);
  if (grown == NULL) abort();
  return grown;
}

void text_add(struct text *text, const void *data, size_t length) {
  if (text->room - text->length < length) {
    text->room = (text->length + length) * 2 + 4096;
    text->data = held_grow(text->data, text->room);
  }
  if (length > 0) memcpy(text->data + text->length, data, length);
  text->length += length;
}

void text_field(struct text *text, const char *field) {
  text_add(text, field, strlen(field) + 1);
}

void text_format(struct text *text, const char *format, ...) {
  char line[NUMBERS_MAX];
  va_list values;
  va_start(values, format);
  int length = vsnprintf(line, sizeof line, format, values);
  va_end(values);
  if (length < 0 || length >= (int)sizeof line) abort();
  text_field(text, line);
}

void text_clear(struct text *text) {
  int error = errno;
  free(text->data);
  *text = (struct text){0};
  errno = error;
}

int text_read(struct text *text, int folder, const char *name) {
  char piece[65536];
  ssize_t got = -1;
  int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return -1;
  text->length = 0;
  while ((got = read(fd, piece, sizeof piece)) > 0) text_add(text, piece, (size_t)got);
  int error = errno;
  close(fd);
  errno = error;
  if (got < 0) return -1;
  text_add(text, "", 1);
  text->length--;
  return 0;
}

bool write_all(int fd, const void *data, size_t length) {
  const char *at = data;
  while (length > 0) {
    ssize_t wrote = write(fd, at, length);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    at += wrote;
    length -= (size_t)wrote;
  }
  return true;
}

int text_write(const struct text *text, int folder, const char *name) {
  int fd = openat(folder, DRAFT, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return -1;
  bool whole = write_all(fd, text->data, text->length) && fsync(fd) == 0;
  int error = errno;
  close(fd);
  if (whole && renameat(folder, DRAFT, folder, name) == 0) return fsync(folder);
  if (whole) error = errno;
  unlinkat(folder, DRAFT, 0);
  errno = error;
  return -1;
}

char *text_next(struct text_reader *reader) {
  char *field = reader->at;
  char *end = field == NULL || field >= reader->end ? NULL : memchr(field, 0, (size_t)(reader->end - field));
  if (end == NULL) return NULL;
  reader->at = end + 1;
  return field;
}
