/* What the policy lets commands write outside of the project: whose changes are told too. */
#ifndef SUBSTRATE_NOTIFY_WRITES_OPENED_H
#define SUBSTRATE_NOTIFY_WRITES_OPENED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Takes an OPENED field of SETUP: the real path of a folder or file. NULL, or what is wrong with it. */
const char *opened_take(const uint8_t *path, size_t length);
bool opened_any(void);
/* Whether an absolute path is one of them or lies below one. */
bool opened_holds(const char *path);

#endif
