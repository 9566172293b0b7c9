/* Paths in the new root. No symlink in the tree, whatever its target, leads outside. */
#ifndef SUBSTRATE_MOUNT_TARGETS_H
#define SUBSTRATE_MOUNT_TARGETS_H

#include <stdbool.h>
#include <sys/types.h>

/* True for an absolute path without "." or ".." component, shorter than PATH_MAX. */
bool path_is_plain(const char *path);

/* Opens a path as an O_PATH descriptor, or -1 with errno. Does not follow the last component: ELOOP for a
   symlink. */
int target_open(int root, const char *path);
/* Makes a folder like mkdir -p; `mode` is for the last folder only. 0 or -1. */
int target_make_folder(int root, const char *path, mode_t mode);
/* Makes an empty file and missing folders above; an existing file stays unchanged. */
int target_make_file(int root, const char *path, mode_t mode);
int target_make_symlink(int root, const char *text, const char *path);

#endif
