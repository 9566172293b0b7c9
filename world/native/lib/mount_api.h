/* The kernel's descriptor-based mount calls (Linux 5.12), by number: C libraries added wrappers late. */
#ifndef SUBSTRATE_LIB_MOUNT_API_H
#define SUBSTRATE_LIB_MOUNT_API_H

#include <stdbool.h>
#include <stdint.h>

/* Mount attributes of mount_setattr(2) and fsmount(2). */
#define ATTR_RDONLY 0x01
#define ATTR_NOSUID 0x02
#define ATTR_NODEV 0x04
#define ATTR_NOEXEC 0x08

/* openat2(2): WALK_IN_ROOT resolves symlinks inside `root`, WALK_NO_SYMLINKS follows none. */
#define WALK_IN_ROOT 0
#define WALK_NO_SYMLINKS 1
int open_below(int root, const char *path, int flags, int walk);

/* Makes a detached copy of the tree at `source`, for mount_place. All calls here return -1 with errno. */
int mount_copy(int source);
int mount_restrict(int tree, uint64_t attributes);
/* Like mount_restrict, for a mounted mount without the mounts below. */
int mount_restrict_one(int mount, uint64_t attributes);
/* Clears attributes of a single mount that this namespace has set. */
int mount_allow_one(int mount, uint64_t attributes);
/* Makes a detached copy whose mounts share what is mounted on them with those of `source`, where these are shared. */
int mount_twin(int source);
int mount_place(int tree, int target);
bool mount_is_root(int fd);
/* Binds a folder onto itself unless it is a mount point: the kernel does not rename mount points (EBUSY). */
int mount_pin(int folder);

/* Makes a new file system: begin, add options (NULL value: a flag), make the detached mount. */
int filesystem_begin(const char *type);
int filesystem_option(int context, const char *key, const char *value);
int filesystem_mount(int context, uint64_t attributes);

/* Opens the file system of a mount (its root only) to reconfigure with unchanged options. */
int filesystem_pick(int mount);
int filesystem_reconfigure(int context);

int pivot(const char *root, const char *old);

#endif
