#ifndef SUBSTRATE_CHANGES_HELD_TEXT_H
#define SUBSTRATE_CHANGES_HELD_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fields that end with NUL, one after the other: names may hold any other byte. */
struct text {
  char *data;
  size_t length, room;
};

/* Ends the process when there is no memory: what was begun is then the next recovery's, as after any kill. */
void text_add(struct text *text, const void *data, size_t length);
void text_field(struct text *text, const char *field);
void text_format(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_clear(struct text *text);

/* A whole file, with a NUL behind it. -1 with errno. */
int text_read(struct text *text, int folder, const char *name);
/* Makes the file `name` durable before it has that name. */
int text_write(const struct text *text, int folder, const char *name);

/* Steps through fields; NULL at the end, and for one that no NUL ends. */
struct text_reader {
  char *at, *end;
};
char *text_next(struct text_reader *reader);

bool write_all(int fd, const void *data, size_t length);

/* As malloc and realloc, and never NULL. */
void *held_grow(void *data, size_t size);

#endif
