/* Paths of the new root. No symlink in the tree, wherever it points, leads outside of it. */
#ifndef SUBSTRATE_MOUNT_TARGETS_H
#define SUBSTRATE_MOUNT_TARGETS_H

#include <stdbool.h>
#include <sys/types.h>

/* Absolute, no "." or ".." component, shorter than PATH_MAX. */
bool path_is_plain(const char *path);

/* O_PATH descriptors, or -1 with errno. The last component is not followed: ELOOP if it is a symlink. */
int target_open(int root, const char *path);
/* Like mkdir -p; `mode` is for the last folder only. 0 or -1. */
int target_make_folder(int root, const char *path, mode_t mode);
/* An empty file, its folders made on the way; an existing one stays as it is. */
int target_make_file(int root, const char *path, mode_t mode);
int target_make_symlink(int root, const char *text, const char *path);

#endif
