#define _GNU_SOURCE
#include "files/files.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/change.h"
#include "files/read.h"
#include "files/search.h"

static struct order order;

/* A field that belongs to the last change, or to its last edit. */
static bool take_change(const struct field *field, uint64_t number) {
  struct order_change *change = order.change_count == 0 ? NULL : &order.changes[order.change_count - 1];
  struct edit *edit = change == NULL || change->edits == 0 ? NULL : &order.list[order.edit_count - 1];
  if (change == NULL) return false;
  switch (field->tag) {
    case TAG_FILE_KIND:
      change->kind = (enum change_kind)number;
      return number <= CHANGE_REMOVE;
    case TAG_FILE_CONTENT:
      change->content = field->data;
      change->length = field->length;
      return true;
    case TAG_FILE_OLD:
      if (order.edit_count == EDITS_MAX) return false;
      if (change->edits++ == 0) change->first_edit = order.edit_count;
      order.list[order.edit_count++] = (struct edit){.old = field->data, .old_length = field->length};
      return true;
    case TAG_FILE_NEW:
      if (edit == NULL) return false;
      edit->new = field->data;
      edit->new_length = field->length;
      return true;
    case TAG_FILE_LINE:
      if (edit == NULL) return false;
      edit->line = number;
      return true;
    case TAG_FILE_FLAGS:
      if (edit == NULL) return false;
      edit->flags = number;
      return true;
  }
  return false;
}

static bool changes_files(void) {
  return order.op != NULL && strcmp(order.op, "change") == 0;
}

/* False: malformed. The first field is the operation. */
static bool take_field(struct field *field) {
  uint64_t number = 0;
  bool is_number = field_u64(field, &number), is_string = field_is_string(field, 0);
  if (field->tag == TAG_FILE_OP && is_string && order.op == NULL) {
    order.op = field_terminate(field);
    return true;
  }
  if (order.op == NULL) return false;
  if (field->tag == TAG_FILE_PATH && is_string) {
    if (!changes_files()) order.path = field_terminate(field);
    else if (order.change_count == CHANGES_MAX) return false;
    else order.changes[order.change_count++].path = field_terminate(field);
    return true;
  }
  if (changes_files()) {
    bool counts = field->tag == TAG_FILE_KIND || field->tag == TAG_FILE_LINE || field->tag == TAG_FILE_FLAGS;
    return (is_number || !counts) && take_change(field, number);
  }
  switch (field->tag) {
    case TAG_FILE_FIRST: order.first = number; return is_number && number > 0;
    case TAG_FILE_LIMIT: order.limit = number; return is_number && number > 0;
    case TAG_FILE_BYTES: order.bytes = number; return is_number;
    case TAG_FILE_FLAGS: order.flags = number; return is_number;
    case TAG_FILE_GLOB:
      if (order.glob_count == GLOBS_MAX || !is_string) return false;
      order.globs[order.glob_count++] = field_terminate(field);
      return true;
    case TAG_FILE_PATTERN:
      if (!is_string) return false;
      order.pattern = field_terminate(field);
      return true;
  }
  return false;
}

static bool take_order(void) {
  uint8_t *input = malloc(ORDER_MAX);
  size_t length = 0;
  ssize_t got = 0;
  while (input != NULL && length < ORDER_MAX) {
    got = read(STDIN_FILENO, input + length, ORDER_MAX - length);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    length += (size_t)got;
  }
  if (input == NULL || got != 0) return false;
  struct field_reader reader = {input, input + length};
  struct field field;
  int more;
  while ((more = field_next(&reader, &field)) > 0) {
    if (!take_field(&field)) return false;
  }
  return more == 0 && order.op != NULL;
}

static bool run(struct field_writer *answer, struct fault *fault) {
  bool change = changes_files();
  if (change && order.change_count > 0) return change_all(&order, answer, fault);
  if (change || order.path == NULL) return fault_at(fault, "order", 0, "");
  if (strcmp(order.op, "read") == 0) return read_file(&order, false, answer, fault);
  if (strcmp(order.op, "raw") == 0) return read_file(&order, true, answer, fault);
  if (strcmp(order.op, "glob") == 0) return search_files(&order, false, answer, fault);
  if (strcmp(order.op, "grep") == 0 && order.pattern != NULL) return search_files(&order, true, answer, fault);
  return fault_at(fault, "order", 0, "");
}

static void put_fault(struct field_writer *answer, const struct fault *fault) {
  answer->length = 0;
  answer->full = false;
  field_put_string(answer, TAG_DONE, fault->word);
  field_put_string(answer, TAG_DONE_PATH, fault->path);
  field_put_u64(answer, TAG_DONE_ERROR, (uint64_t)fault->error);
  field_put_u64(answer, TAG_DONE_CHANGE, (uint64_t)fault->change);
  field_put_u64(answer, TAG_DONE_EDIT, (uint64_t)fault->edit);
  field_put_u64(answer, TAG_DONE_COUNT, fault->count);
}

int files_run(void) {
  static struct fault fault;
  struct field_writer answer = {.data = malloc(ANSWER_MAX), .capacity = ANSWER_MAX};
  /* A change that has begun is ended, or taken back: it takes microseconds. */
  signal(SIGTERM, SIG_IGN);
  if (answer.data == NULL || !take_order()) return 1;
  field_put_string(&answer, TAG_DONE, "ok");
  bool good = run(&answer, &fault);
  if (!good) put_fault(&answer, &fault);
  for (size_t sent = 0; sent < answer.length;) {
    ssize_t count = write(STDOUT_FILENO, answer.data + sent, answer.length - sent);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return 1;
    sent += (size_t)count;
  }
  return good ? 0 : 2;
}
