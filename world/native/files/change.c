#define _GNU_SOURCE
#include "files/change.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "files/edit.h"
#include "files/place.h"

/* The default of /proc/sys/kernel/overflowgid (user_namespaces(7)). */
#define UNMAPPED_GROUP 65534

#define ACCESS_LIST "system.posix_acl_access"

struct staged {
  struct place place;
  bool existed, has_temporary, committed;
  struct stat before; /* of the replaced file */
  struct bytes content;
  bool owns_content;
  char temporary[32];
  ino_t inode; /* of the temporary file */
  uint64_t replaced;
};

static int rename_in(int folder, const char *from, const char *to, unsigned flags) {
  return (int)syscall(SYS_renameat2, folder, from, folder, to, flags);
}

static bool draw_name(struct staged *one) {
  uint64_t random;
  if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) return false;
  snprintf(one->temporary, sizeof one->temporary, ".substrate-%016llx", (unsigned long long)random);
  return true;
}

static bool is_same(const struct stat *one, const struct stat *other) {
  return one->st_dev == other->st_dev && one->st_ino == other->st_ino && one->st_size == other->st_size &&
         one->st_mtim.tv_sec == other->st_mtim.tv_sec && one->st_mtim.tv_nsec == other->st_mtim.tv_nsec;
}

/* Asks the kernel by the file's own name, so that a refusal is recorded under that name and not under the temporary's. */
static bool may_write(struct staged *one, struct fault *fault) {
  int folder = one->place.folder;
  const char *name = one->place.name;
  char self[32];
  if (one->existed) {
    int fd = openat(folder, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 && errno != ETXTBSY) return fault_at(fault, "errno", errno, one->place.path);
    if (fd >= 0) close(fd);
    if (one->before.st_uid != geteuid()) return fault_at(fault, "owner", 0, one->place.path);
    return true;
  }
  /* faccessat(2) takes no O_PATH descriptor with an empty name, but its link in /proc. */
  snprintf(self, sizeof self, "/proc/self/fd/%d", folder);
  if (faccessat(AT_FDCWD, self, W_OK, AT_EACCESS) == 0) return true;
  int error = errno;
  int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (fd >= 0) {
    close(fd);
    unlinkat(folder, name, 0);
  }
  return fault_at(fault, "errno", error, one->place.path);
}

/* Gives the new file the old one's access list (acl(5)), in which alone stands what the owning group may do: the mode's bits for the
   group are the list's mask. Without a list, takes away what the folder's default list gave. 0, or an errno. */
static int take_access_list(const struct staged *one, int fd) {
  static char list[XATTR_SIZE_MAX];
  char path[64 + NAME_MAX];
  snprintf(path, sizeof path, "/proc/self/fd/%d/%s", one->place.folder, one->place.name);
  ssize_t length = lgetxattr(path, ACCESS_LIST, list, sizeof list);
  if (length > 0) return fsetxattr(fd, ACCESS_LIST, list, (size_t)length, 0) == 0 ? 0 : errno;
  if (length < 0 && errno != ENODATA && errno != EOPNOTSUPP) return errno;
  return fremovexattr(fd, ACCESS_LIST) == 0 || errno == ENODATA || errno == EOPNOTSUPP ? 0 : errno;
}

static bool write_temporary(struct staged *one, struct fault *fault) {
  const struct bytes *content = &one->content;
  struct stat status;
  if (!draw_name(one)) return fault_at(fault, "errno", EIO, one->place.path);
  int fd = openat(one->place.folder, one->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                  one->existed ? 0600 : 0666);
  if (fd < 0) return fault_at(fault, "errno", errno, one->place.path);
  one->has_temporary = true;
  size_t written = 0;
  int error = 0;
  while (written < content->length && error == 0) {
    ssize_t count = write(fd, content->data + written, content->length - written);
    if (count < 0 && errno != EINTR) error = errno;
    if (count > 0) written += (size_t)count;
  }
  if (error == 0 && one->existed) {
    const struct stat *before = &one->before;
    /* In a set-group-id folder the new file has the folder's group, which no command could give it. Every group that a user
       namespace does not map looks alike, so that one cannot be kept. */
    if (fstat(fd, &status) < 0) error = errno;
    else if (before->st_gid != getegid() && before->st_gid == UNMAPPED_GROUP) error = EPERM;
    else if (before->st_gid != status.st_gid && fchown(fd, (uid_t)-1, before->st_gid) < 0) error = errno;
    int refused = error == 0 ? take_access_list(one, fd) : 0;
    /* A list that names a user or group whom the world's user namespace does not map (posix_acl_fix_xattr_from_user). */
    if (refused == EINVAL || refused == EPERM || refused == EOPNOTSUPP) {
      close(fd);
      return fault_at(fault, "access_list", 0, one->place.path);
    }
    if (refused != 0) error = refused;
    /* As a write does, a replacement drops set-user-id bits. */
    if (error == 0 && fchmod(fd, before->st_mode & 01777) < 0) error = errno;
  }
  if (error == 0 && fstat(fd, &status) < 0) error = errno;
  if (close(fd) < 0 && error == 0) error = errno;
  if (error != 0) return fault_at(fault, "errno", error, one->place.path);
  one->inode = status.st_ino;
  return true;
}

/* Looks at the target and decides on its new content. */
static bool prepare(const struct order *order, const struct order_change *change, struct staged *one, struct fault *fault) {
  bool writes = change->kind == CHANGE_WRITE || change->kind == CHANGE_CREATE;
  one->existed = fstatat(one->place.folder, one->place.name, &one->before, AT_SYMLINK_NOFOLLOW) == 0;
  if (!one->existed && (errno != ENOENT || !writes)) return fault_at(fault, "errno", errno, one->place.path);
  if (one->existed && change->kind == CHANGE_CREATE) return fault_at(fault, "exists", 0, one->place.path);
  if (one->existed && S_ISDIR(one->before.st_mode)) return fault_at(fault, "errno", EISDIR, one->place.path);
  if (one->existed && !S_ISREG(one->before.st_mode)) return fault_at(fault, "not_regular", 0, one->place.path);
  if (writes) {
    one->content = (struct bytes){(uint8_t *)change->content, change->length};
    return true;
  }
  if (!place_content(&one->place, &one->before, &one->content.data, fault)) return false;
  one->owns_content = true;
  one->content.length = (size_t)one->before.st_size;
  if (is_binary(one->content.data, one->content.length)) return fault_at(fault, "binary", 0, one->place.path);
  if (edit_apply(&one->content, order->list + change->first_edit, change->edits, &one->replaced, fault)) {
    /* A patch that removes a file shows all of its lines, or none. */
    if (change->kind != CHANGE_REMOVE || one->content.length == 0 || change->edits == 0) return true;
    fault_at(fault, "no_match", 0, "");
  }
  snprintf(fault->path, sizeof fault->path, "%s", one->place.path);
  return false;
}

/* Puts the new file in place; what was there goes to the temporary name, where it is compared with what was expected. */
static bool commit(const struct order_change *change, struct staged *one, struct fault *fault) {
  int folder = one->place.folder;
  const char *name = one->place.name;
  struct stat displaced;
  bool removes = change->kind == CHANGE_REMOVE;
  int done = removes ? rename_in(folder, name, one->temporary, RENAME_NOREPLACE)
                     : rename_in(folder, one->temporary, name, one->existed ? RENAME_EXCHANGE : RENAME_NOREPLACE);
  if (done < 0) {
    int error = errno;
    bool conflict = (one->existed && error == ENOENT) || (!one->existed && error == EEXIST);
    return fault_at(fault, conflict ? "changed" : "errno", error, one->place.path);
  }
  one->committed = true;
  one->has_temporary = one->existed;
  if (!one->existed) return true;
  if (fstatat(folder, one->temporary, &displaced, AT_SYMLINK_NOFOLLOW) < 0)
    return fault_at(fault, "errno", errno, one->place.path);
  bool same = change->kind == CHANGE_WRITE ? S_ISREG(displaced.st_mode) : is_same(&displaced, &one->before);
  return same || fault_at(fault, "changed", 0, one->place.path);
}

static void take_back(const struct order_change *change, struct staged *one) {
  int folder = one->place.folder;
  struct stat status;
  if (!one->committed) return;
  if (change->kind == CHANGE_REMOVE) {
    if (rename_in(folder, one->temporary, one->place.name, RENAME_NOREPLACE) == 0) one->has_temporary = false;
  } else if (one->existed) {
    /* Where that fails, the old content stays under the temporary name. */
    if (rename_in(folder, one->temporary, one->place.name, RENAME_EXCHANGE) < 0) one->has_temporary = false;
  } else if (fstatat(folder, one->place.name, &status, AT_SYMLINK_NOFOLLOW) == 0 && status.st_ino == one->inode) {
    unlinkat(folder, one->place.name, 0);
  }
}

static bool stage(const struct order *order, int index, struct staged *one, struct made *made, struct fault *fault) {
  const struct order_change *change = &order->changes[index];
  bool makes = change->kind == CHANGE_WRITE || change->kind == CHANGE_CREATE;
  fault->change = index;
  return place_find(&one->place, change->path, makes ? made : NULL, fault) && prepare(order, change, one, fault) &&
         may_write(one, fault) &&
         (change->kind == CHANGE_REMOVE ? draw_name(one) || fault_at(fault, "errno", EIO, one->place.path)
                                        : write_temporary(one, fault));
}

/* Two changes of one file would overwrite each other. */
static bool is_twice(const struct staged *staged, int index) {
  struct stat one, other;
  for (int i = 0; i < index; i++) {
    if (strcmp(staged[i].place.name, staged[index].place.name) == 0 && fstat(staged[i].place.folder, &one) == 0 &&
        fstat(staged[index].place.folder, &other) == 0 && one.st_ino == other.st_ino && one.st_dev == other.st_dev)
      return true;
    if (staged[i].existed && staged[index].existed && staged[i].before.st_ino == staged[index].before.st_ino &&
        staged[i].before.st_dev == staged[index].before.st_dev)
      return true;
  }
  return false;
}

static void describe(const struct order_change *change, const struct staged *one, struct field_writer *answer) {
  const char *kind = change->kind == CHANGE_REMOVE ? "removed" : one->existed ? "changed" : "created";
  field_put_string(answer, TAG_DONE_PATH, one->place.path);
  field_put_string(answer, TAG_DONE_KIND, kind);
  field_put_u64(answer, TAG_DONE_SIZE, change->kind == CHANGE_REMOVE ? 0 : one->content.length);
  field_put_u64(answer, TAG_DONE_COUNT, one->replaced);
}

bool change_all(const struct order *order, struct field_writer *answer, struct fault *fault) {
  static struct staged staged[CHANGES_MAX];
  static struct made made;
  int count = 0, committed = 0;
  bool good = true;
  for (; good && count < order->change_count; count++) {
    staged[count].place.folder = -1;
    good = stage(order, count, &staged[count], &made, fault);
    if (good && is_twice(staged, count)) good = fault_at(fault, "twice", 0, staged[count].place.path);
  }
  for (; good && committed < count; committed++) {
    fault->change = committed;
    good = commit(&order->changes[committed], &staged[committed], fault);
  }
  for (int i = committed - 1; !good && i >= 0; i--) take_back(&order->changes[i], &staged[i]);
  for (int i = 0; i < count; i++) {
    struct staged *one = &staged[i];
    if (one->has_temporary) unlinkat(one->place.folder, one->temporary, 0);
    if (good) describe(&order->changes[i], one, answer);
    if (one->owns_content) free(one->content.data);
    place_close(&one->place);
  }
  if (!good) made_undo(&made);
  return good;
}
