/* Replaces text: exact matches only, and no guess between several. Pure. */
#ifndef SUBSTRATE_FILES_EDIT_H
#define SUBSTRATE_FILES_EDIT_H

#include "files/order.h"

struct bytes {
  uint8_t *data;
  size_t length;
};

/* Applies the edits in order. On success `content` is replaced by new memory; the old is freed. `count`: replaced places. */
bool edit_apply(struct bytes *content, const struct edit *edits, int count, uint64_t *replaced, struct fault *fault);

#endif
