#define _GNU_SOURCE
#include "files/read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/place.h"

#define PIECE (256U * 1024)
/* Lines behind so many bytes are neither found nor counted. */
#define SCANNED_MAX (64U * 1024 * 1024)

struct range {
  uint64_t first, last; /* lines, from 1 */
  uint64_t line; /* of the next byte */
  uint8_t *text;
  size_t length, room;
  bool cut, in_line;
};

/* Takes the part of a piece that lies in the range. */
static void take(struct range *range, const uint8_t *data, size_t length) {
  while (length > 0) {
    const uint8_t *end = memchr(data, '\n', length);
    size_t part = end == NULL ? length : (size_t)(end - data) + 1;
    if (range->line >= range->first && range->line <= range->last) {
      size_t kept = part < range->room - range->length ? part : range->room - range->length;
      memcpy(range->text + range->length, data, kept);
      range->length += kept;
      if (kept < part) range->cut = true;
    }
    range->in_line = end == NULL;
    if (end != NULL) range->line++;
    data += part;
    length -= part;
  }
}

static ssize_t next_piece(int fd, uint8_t *piece, size_t room) {
  for (;;) {
    ssize_t got = read(fd, piece, room);
    if (got >= 0 || errno != EINTR) return got;
  }
}

static bool read_lines(int fd, const struct order *order, struct range *range, const struct place *place, struct field_writer *answer,
                       struct fault *fault) {
  static uint8_t piece[PIECE];
  uint64_t scanned = 0;
  ssize_t got;
  while ((got = next_piece(fd, piece, sizeof piece)) > 0 && scanned < SCANNED_MAX) {
    if (scanned == 0 && is_binary(piece, (size_t)got)) return fault_at(fault, "binary", 0, place->path);
    scanned += (uint64_t)got;
    take(range, piece, (size_t)got);
  }
  if (got < 0) return fault_at(fault, "errno", errno, place->path);
  uint64_t lines = range->line - (range->in_line ? 0 : 1);
  if (got > 0 && range->first > lines) return fault_at(fault, "too_large", 0, place->path);
  field_put(answer, TAG_DONE_TEXT, range->text, range->length);
  field_put_u64(answer, TAG_DONE_LINE, order->first);
  if (got == 0) field_put_u64(answer, TAG_DONE_LINES, lines);
  if (range->cut || got > 0 || lines > range->last) field_put_u64(answer, TAG_DONE_CUT, 1);
  return true;
}

static bool read_raw(int fd, struct range *range, const struct place *place, struct field_writer *answer, struct fault *fault) {
  ssize_t got = 1;
  while (range->length < range->room && (got = next_piece(fd, range->text + range->length, range->room - range->length)) > 0)
    range->length += (size_t)got;
  if (got < 0) return fault_at(fault, "errno", errno, place->path);
  field_put(answer, TAG_DONE_TEXT, range->text, range->length);
  uint8_t more;
  if (got > 0 && next_piece(fd, &more, 1) > 0) field_put_u64(answer, TAG_DONE_CUT, 1);
  return true;
}

bool read_file(const struct order *order, bool raw, struct field_writer *answer, struct fault *fault) {
  struct place place;
  struct stat status;
  struct range range = {.first = order->first, .line = 1};
  if (!place_find(&place, order->path, NULL, fault)) return false;
  int fd = place_read(&place, &status, fault);
  if (fd < 0) return false;
  range.room = order->bytes < ANSWER_MAX / 2 ? order->bytes : ANSWER_MAX / 2;
  range.last = order->limit > UINT64_MAX - order->first ? UINT64_MAX : order->first + order->limit - 1;
  range.text = malloc(range.room + 1);
  if (range.text == NULL) return fault_at(fault, "errno", ENOMEM, place.path);
  field_put_string(answer, TAG_DONE_PATH, place.path);
  field_put_u64(answer, TAG_DONE_SIZE, (uint64_t)status.st_size);
  bool good = raw ? read_raw(fd, &range, &place, answer, fault) : read_lines(fd, order, &range, &place, answer, fault);
  free(range.text);
  close(fd);
  place_close(&place);
  return good;
}
