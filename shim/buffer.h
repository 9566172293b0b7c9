/* A growing byte buffer, with JSON writing and reading. */
#ifndef SUBSTRATE_SHIM_BUFFER_H
#define SUBSTRATE_SHIM_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct buffer {
  char *data;
  size_t length, capacity;
  bool failed; /* out of memory: the content is incomplete */
};

void buffer_add(struct buffer *buffer, const char *bytes, size_t length);
void buffer_text(struct buffer *buffer, const char *text);
/* Adds a JSON string. Invalid UTF-8 becomes U+FFFD, as in the broker's own decoder. */
void buffer_json(struct buffer *buffer, const char *text);
/* Adds `"name":` and a string, after a comma unless the field is the first. */
void buffer_field(struct buffer *buffer, const char *name, const char *value);
void buffer_free(struct buffer *buffer);

/* Length in bytes of the UTF-8 character at `at` (RFC 3629); 0 for invalid UTF-8. */
size_t buffer_character(const unsigned char *at);

/* Finds the value of the first string field of the name, or NULL; the caller frees the value. JSON escapes
   quotes, so no value can look like a field. */
char *json_string(const char *json, const char *name);

#endif
