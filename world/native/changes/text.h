#ifndef SUBSTRATE_CHANGES_TEXT_H
#define SUBSTRATE_CHANGES_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fields, each ended by NUL: names may hold any other byte. */
struct text {
  char *data;
  size_t length, room;
};

/* Ends the process without memory: the next recovery then handles the change, as after any kill. */
void text_add(struct text *text, const void *data, size_t length);
void text_field(struct text *text, const char *field);
void text_format(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Keeps errno. */
void text_clear(struct text *text);

/* Reads a whole file, and adds a NUL after its content. -1 with errno. */
int text_read(struct text *text, int folder, const char *name);
/* Makes the file durable (fsync) before the rename to `name`. */
int text_write(const struct text *text, int folder, const char *name);

/* Steps through fields; NULL at the end, and for a field without its NUL. */
struct text_reader {
  char *at, *end;
};
char *text_next(struct text_reader *reader);

bool write_all(int fd, const void *data, size_t length);

/* Like realloc, but never returns NULL. */
void *held_grow(void *data, size_t size);

#endif
