/* Tagged fields inside a frame's payload: u16 tag, u16 0, u32 length, bytes. Pure: no system calls. */
#ifndef SUBSTRATE_LIB_FIELDS_H
#define SUBSTRATE_LIB_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIELD_HEADER_SIZE 8

struct field {
  uint16_t tag;
  uint32_t length;
  uint8_t *data;
};

struct field_reader {
  uint8_t *at;
  uint8_t *end;
};

/* Reads a field. 1: success, 0: end of the payload, -1: malformed. */
int field_next(struct field_reader *reader, struct field *field);
/* False unless the field has exactly eight bytes. */
bool field_u64(const struct field *field, uint64_t *value);
/* True for a string: at least `least` bytes, without NUL. */
bool field_is_string(const struct field *field, uint32_t least);
/* Terminates a string in place by moving it over its own field header, which is lost. */
char *field_terminate(struct field *field);

/* Writes into a caller's buffer. `full` is set, and stays set, after a field that did not fit. */
struct field_writer {
  uint8_t *data;
  size_t capacity;
  size_t length;
  bool full;
};

void field_put(struct field_writer *writer, uint16_t tag, const void *data, size_t length);
void field_put_u64(struct field_writer *writer, uint16_t tag, uint64_t value);
void field_put_string(struct field_writer *writer, uint16_t tag, const char *text);

uint32_t read_u32(const uint8_t *bytes);
uint64_t read_u64(const uint8_t *bytes);
void write_u32(uint8_t *bytes, uint32_t value);
void write_u64(uint8_t *bytes, uint64_t value);

#endif
