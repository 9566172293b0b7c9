/* Changes of several files, all or none: staged beside their targets, then exchanged, and taken back where one fails. */
#ifndef SUBSTRATE_FILES_CHANGE_H
#define SUBSTRATE_FILES_CHANGE_H

#include "files/order.h"

/* Carries out the order's changes and adds a description of each to the answer. */
bool change_all(const struct order *order, struct field_writer *answer, struct fault *fault);

#endif
