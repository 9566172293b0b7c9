/* The order of a file operation and its answer, as tagged fields (lib/fields.h). world/files/order.ts writes and reads them. */
#ifndef SUBSTRATE_FILES_ORDER_H
#define SUBSTRATE_FILES_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/fields.h"

/* An order, and the answer, in bytes. */
#define ORDER_MAX (24U * 1024 * 1024)
#define ANSWER_MAX (4U * 1024 * 1024)
/* A file whose content is replaced, compared or searched as a whole. */
#define CONTENT_MAX (10U * 1024 * 1024)
#define CHANGES_MAX 64
#define EDITS_MAX 512
#define GLOBS_MAX 64

enum order_tag {
  TAG_FILE_OP = 1,
  TAG_FILE_PATH,
  TAG_FILE_KIND,
  TAG_FILE_CONTENT,
  TAG_FILE_OLD,
  TAG_FILE_NEW,
  TAG_FILE_LINE,
  TAG_FILE_FLAGS,
  TAG_FILE_FIRST,
  TAG_FILE_LIMIT,
  TAG_FILE_BYTES,
  TAG_FILE_GLOB,
  TAG_FILE_PATTERN,
};

enum answer_tag {
  TAG_DONE = 32, /* a word: `ok`, or why nothing was done */
  TAG_DONE_PATH,
  TAG_DONE_ERROR, /* errno */
  TAG_DONE_CHANGE, /* index of the change */
  TAG_DONE_EDIT, /* index of the edit in the change */
  TAG_DONE_COUNT,
  TAG_DONE_TEXT,
  TAG_DONE_LINE,
  TAG_DONE_LINES,
  TAG_DONE_SIZE,
  TAG_DONE_CUT,
  TAG_DONE_KIND,
};

#define EDIT_ALL 1U /* every match */
#define EDIT_HUNK 2U /* whole lines, as in a patch */
#define EDIT_FIRST 4U /* of a hunk's places the first */

struct edit {
  const uint8_t *old, *new;
  uint32_t old_length, new_length;
  uint64_t line; /* the line a hunk names, from 1; 0: unknown */
  uint64_t flags;
};

enum change_kind { CHANGE_WRITE, CHANGE_CREATE, CHANGE_EDIT, CHANGE_REMOVE };

struct order_change {
  char *path;
  enum change_kind kind;
  const uint8_t *content;
  uint32_t length;
  int first_edit, edits;
};

#define SEARCH_ALL 1U /* ignored names too */
#define SEARCH_NO_CASE 2U
#define SEARCH_FIXED 4U
#define SEARCH_NAMES 8U /* only the names of files that match */

struct order {
  const char *op;
  char *path;
  const char *pattern;
  char *globs[GLOBS_MAX];
  uint64_t first, limit, bytes, flags;
  struct order_change changes[CHANGES_MAX];
  struct edit list[EDITS_MAX];
  int change_count, edit_count, glob_count;
};

/* Why an operation ended without effect. `error` is 0 where no call failed. */
struct fault {
  const char *word;
  int error, change, edit;
  uint64_t count;
  char path[4352];
};

/* Notes a fault. Always returns false, for `return fault_at(…)`. */
bool fault_at(struct fault *fault, const char *word, int error, const char *path);

#endif
