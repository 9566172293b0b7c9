/* Bytes that grow, and JSON in them. */
#ifndef SUBSTRATE_SHIM_BUFFER_H
#define SUBSTRATE_SHIM_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct buffer {
  char *data;
  size_t length, capacity;
  bool failed; /* there was no memory: what it holds is not all */
};

void buffer_add(struct buffer *buffer, const char *bytes, size_t length);
void buffer_text(struct buffer *buffer, const char *text);
/* A JSON string. What is no UTF-8 becomes U+FFFD, as the broker's own reading of it would. */
void buffer_json(struct buffer *buffer, const char *text);
/* `"name":` and a string, with a comma before all but the first. */
void buffer_field(struct buffer *buffer, const char *name, const char *value);
void buffer_free(struct buffer *buffer);

/* Bytes of the UTF-8 character that begins here (RFC 3629); 0: none does. */
size_t buffer_character(const unsigned char *at);

/* The value of the first string field with this name, or NULL. Quotes in a JSON text are escaped, so that no value can look
   like a field. The caller frees it. */
char *json_string(const char *json, const char *name);

#endif
