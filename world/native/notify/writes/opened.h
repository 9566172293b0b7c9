/* Folders and files outside the project that the policy lets commands write: their changes are reported
   too. */
#ifndef SUBSTRATE_NOTIFY_WRITES_OPENED_H
#define SUBSTRATE_NOTIFY_WRITES_OPENED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Takes an OPENED field of SETUP: the real path of a folder or file. Returns NULL or the error. */
const char *opened_take(const uint8_t *path, size_t length);
bool opened_any(void);
/* True for an absolute path at or below an opened path. */
bool opened_holds(const char *path);

#endif
