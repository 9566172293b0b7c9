/* Finds files by name (glob) and lines by content (grep), without following links. */
#ifndef SUBSTRATE_FILES_SEARCH_H
#define SUBSTRATE_FILES_SEARCH_H

#include "files/order.h"

bool search_files(const struct order *order, bool in_content, struct field_writer *answer, struct fault *fault);

#endif
