/* Reads a range of lines, or the first bytes, of a regular file. */
#ifndef SUBSTRATE_FILES_READ_H
#define SUBSTRATE_FILES_READ_H

#include "files/order.h"

bool read_file(const struct order *order, bool raw, struct field_writer *answer, struct fault *fault);

#endif
