#include "lib/fields.h"

#include <string.h>

int field_next(struct field_reader *reader, struct field *field) {
  size_t left = (size_t)(reader->end - reader->at);
  if (left == 0) return 0;
  if (left < FIELD_HEADER_SIZE) return -1;
  uint8_t *header = reader->at;
  if (header[2] != 0 || header[3] != 0) return -1;
  field->tag = (uint16_t)(header[0] | header[1] << 8);
  field->length = read_u32(header + 4);
  if (field->length > left - FIELD_HEADER_SIZE) return -1;
  field->data = header + FIELD_HEADER_SIZE;
  reader->at = field->data + field->length;
  return 1;
}

bool field_u64(const struct field *field, uint64_t *value) {
  if (field->length != 8) return false;
  *value = read_u64(field->data);
  return true;
}

bool field_is_string(const struct field *field, uint32_t least) {
  return field->length >= least && memchr(field->data, 0, field->length) == NULL;
}

char *field_terminate(struct field *field) {
  uint8_t *start = field->data - FIELD_HEADER_SIZE;
  memmove(start, field->data, field->length);
  start[field->length] = 0;
  return (char *)start;
}

void field_put(struct field_writer *writer, uint16_t tag, const void *data, size_t length) {
  if (writer->full || length > UINT32_MAX || writer->capacity - writer->length < FIELD_HEADER_SIZE ||
      writer->capacity - writer->length - FIELD_HEADER_SIZE < length) {
    writer->full = true;
    return;
  }
  uint8_t *header = writer->data + writer->length;
  header[0] = (uint8_t)tag;
  header[1] = (uint8_t)(tag >> 8);
  header[2] = header[3] = 0;
  write_u32(header + 4, (uint32_t)length);
  if (length > 0) memcpy(header + FIELD_HEADER_SIZE, data, length);
  writer->length += FIELD_HEADER_SIZE + length;
}

void field_put_u64(struct field_writer *writer, uint16_t tag, uint64_t value) {
  uint8_t bytes[8];
  write_u64(bytes, value);
  field_put(writer, tag, bytes, sizeof bytes);
}

void field_put_string(struct field_writer *writer, uint16_t tag, const char *text) {
  field_put(writer, tag, text, strlen(text));
}

uint32_t read_u32(const uint8_t *bytes) {
  return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

uint64_t read_u64(const uint8_t *bytes) {
  return (uint64_t)read_u32(bytes) | (uint64_t)read_u32(bytes + 4) << 32;
}

void write_u32(uint8_t *bytes, uint32_t value) {
  for (int i = 0; i < 4; i++) bytes[i] = (uint8_t)(value >> (8 * i));
}

void write_u64(uint8_t *bytes, uint64_t value) {
  for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)(value >> (8 * i));
}
