/* Reading of JSON documents (RFC 8259) from a peer that is not trusted to write them well. */
#ifndef SUBSTRATE_CLIENT_JSON_H
#define SUBSTRATE_CLIENT_JSON_H

#include <stdbool.h>
#include <stddef.h>

/* A valid value inside a document, without blanks around it. `text` is NULL for no value: every function
   takes such a value, and finds nothing in it. */
struct json {
  const char *text;
  size_t length;
};

/* Checks a whole document: one value, nothing behind it. No value for anything else, and for more than 64
   levels of arrays and objects. */
struct json json_document(const char *text, size_t length);
/* The value of an object's own member; of several with one name the last, as JSON.parse. */
struct json json_member(struct json object, const char *name);
/* The first item of an array for `before` without value, else the item after `before`. */
struct json json_item(struct json array, struct json before);
/* The name of an object's first member for `before` without value, else of the member behind `value`, which then is
   the value of `before`. Stores the member's value. */
struct json json_name(struct json object, struct json before, struct json *value);
/* Whether the value is a whole number within `least` and `most`, in digits alone. */
bool json_integer(struct json value, long least, long most, long *number);
bool json_is(struct json string, const char *text);
bool json_is_true(struct json value);
/* Decodes a string; the caller frees the copy. NULL for other values and without memory. Modified UTF-8:
   U+0000 has two bytes and a lone surrogate three, so the copy is a C string with all characters. */
char *json_copy(struct json string);

#endif
