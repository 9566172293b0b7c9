/* A growing byte buffer, with JSON writing. */
#ifndef SUBSTRATE_CLIENT_BUFFER_H
#define SUBSTRATE_CLIENT_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct buffer {
  char *data;
  size_t length, capacity;
  bool failed; /* out of memory: the content is incomplete */
};

void buffer_add(struct buffer *buffer, const char *bytes, size_t length);
void buffer_text(struct buffer *buffer, const char *text);
/* Adds a JSON string. Invalid UTF-8 becomes U+FFFD, as in Node's decoder of words and variables. */
void buffer_json(struct buffer *buffer, const char *text);
/* Adds `"name":` and a string, after a comma unless the field is the first. */
void buffer_field(struct buffer *buffer, const char *name, const char *value);
void buffer_free(struct buffer *buffer);

/* Length in bytes of the UTF-8 character at `at` (RFC 3629); 0 for invalid UTF-8. */
size_t buffer_character(const unsigned char *at);

/* Whether a text is UTF-8. JSON has no other bytes: another word would arrive as another name of a file. */
bool buffer_is_text(const char *text);

#endif
