#define _GNU_SOURCE
#include "lib/mount_api.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/stat.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/descriptors.h"

/* Values of <linux/mount.h>, which conflicts with <sys/mount.h> of some C libraries. */
#define MS_PRIVATE (1 << 18)
#define TREE_CLONE 1
#define TREE_CLOEXEC O_CLOEXEC
#define MOVE_FROM_EMPTY_PATH 0x04
#define MOVE_TO_EMPTY_PATH 0x40
#define FILESYSTEM_CLOEXEC 1
#define CONFIG_FLAG 0
#define CONFIG_STRING 1
#define CONFIG_CREATE 6
#define CONFIG_RECONFIGURE 7
#define PICK_CLOEXEC 0x01
#define PICK_EMPTY_PATH 0x08
#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

struct attributes {
  uint64_t set, clear, propagation, userns_fd;
};

int open_below(int root, const char *path, int flags, int walk) {
  while (*path == '/') path++;
  struct open_how how = {
      .flags = (uint64_t)flags | O_CLOEXEC,
      .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
  };
  if (walk == WALK_NO_SYMLINKS) how.resolve |= RESOLVE_NO_SYMLINKS;
  return (int)syscall(SYS_openat2, root, *path == 0 ? "." : path, &how, sizeof how);
}

int mount_twin(int source) {
  return (int)syscall(SYS_open_tree, source, "", TREE_CLONE | TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
}

/* Private: a copy bound inside its own source would otherwise repeat each later mount there, and pins are such
   copies, one inside the other. */
int mount_copy(int source) {
  struct attributes change = {.propagation = MS_PRIVATE};
  int tree = mount_twin(source);
  if (tree < 0) return -1;
  if (syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &change, sizeof change) == 0) return tree;
  return close_keeping_errno(tree, -1);
}

int mount_restrict(int tree, uint64_t attributes) {
  /* Only sets, never clears: in a user namespace clearing a flag that the host locked is refused. */
  struct attributes change = {.set = attributes};
  return (int)syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &change, sizeof change);
}

int mount_restrict_one(int mount, uint64_t attributes) {
  struct attributes change = {.set = attributes};
  return (int)syscall(SYS_mount_setattr, mount, "", AT_EMPTY_PATH, &change, sizeof change);
}

int mount_allow_one(int mount, uint64_t attributes) {
  struct attributes change = {.clear = attributes};
  return (int)syscall(SYS_mount_setattr, mount, "", AT_EMPTY_PATH, &change, sizeof change);
}

int mount_place(int tree, int target) {
  return (int)syscall(SYS_move_mount, tree, "", target, "", MOVE_FROM_EMPTY_PATH | MOVE_TO_EMPTY_PATH);
}

bool mount_is_root(int fd) {
  struct statx status;
  if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, 0U, &status) < 0) return false;
  return (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

int mount_pin(int folder) {
  if (mount_is_root(folder)) return 0;
  int tree = mount_copy(folder);
  return tree < 0 ? -1 : close_keeping_errno(tree, mount_place(tree, folder));
}

int filesystem_begin(const char *type) {
  return (int)syscall(SYS_fsopen, type, FILESYSTEM_CLOEXEC);
}

int filesystem_option(int context, const char *key, const char *value) {
  return (int)syscall(SYS_fsconfig, context, value != NULL ? CONFIG_STRING : CONFIG_FLAG, key, value, 0);
}

int filesystem_mount(int context, uint64_t attributes) {
  if (syscall(SYS_fsconfig, context, CONFIG_CREATE, NULL, NULL, 0) < 0) return -1;
  return (int)syscall(SYS_fsmount, context, FILESYSTEM_CLOEXEC, (unsigned)attributes);
}

int filesystem_pick(int mount) {
  return (int)syscall(SYS_fspick, mount, "", PICK_CLOEXEC | PICK_EMPTY_PATH);
}

int filesystem_reconfigure(int context) {
  return (int)syscall(SYS_fsconfig, context, CONFIG_RECONFIGURE, NULL, NULL, 0);
}

int pivot(const char *root, const char *old) {
  return (int)syscall(SYS_pivot_root, root, old);
}
