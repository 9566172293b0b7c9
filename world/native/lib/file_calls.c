#define _GNU_SOURCE
#include "lib/file_calls.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <stddef.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define OWN_AUDIT AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_AUDIT AUDIT_ARCH_AARCH64
#endif

/* Linux 6.6, newer than the oldest headers for this build. The same number on every architecture. */
#define CALL_FCHMODAT2 452

/* O_TMPFILE without its O_DIRECTORY bit: a file without a name, until linkat adds a name. */
#define TMPFILE (O_TMPFILE & ~O_DIRECTORY)

/* RENAME_EXCHANGE of linux/fs.h. */
#define EXCHANGE 2U

#define NONE (-1)

/* Positions of the names in a call's arguments. */
struct shape {
  int number;
  uint8_t how[FILE_NAMES_MAX]; /* 0: no such name */
  int8_t folder[FILE_NAMES_MAX]; /* NONE: AT_FDCWD */
  int8_t text[FILE_NAMES_MAX]; /* NONE: `folder` is the file */
  int8_t flags; /* flags of open(2), NONE: no flags; for openat2, address of the flags in memory */
  bool follow;
  bool makes;
};

/* A file that gets another name (link) may be written under the new name: the old name is looked up too. */
static const struct shape SHAPES[] = {
#ifdef SYS_open
    {SYS_open, {HOW_WRITE}, {NONE}, {0}, 1, true, false},
    {SYS_creat, {HOW_NAME | HOW_WRITE}, {NONE}, {0}, NONE, true, true},
    {SYS_rename, {HOW_NAME, HOW_NAME | HOW_MOVED}, {NONE, NONE}, {0, 1}, NONE, false, false},
    {SYS_unlink, {HOW_NAME}, {NONE}, {0}, NONE, false, false},
    {SYS_rmdir, {HOW_NAME}, {NONE}, {0}, NONE, false, false},
    {SYS_mkdir, {HOW_NAME}, {NONE}, {0}, NONE, false, true},
    {SYS_mknod, {HOW_NAME}, {NONE}, {0}, NONE, false, true},
    {SYS_link, {HOW_MODE, HOW_NAME}, {NONE, NONE}, {0, 1}, NONE, false, true},
    {SYS_symlink, {HOW_NAME}, {NONE}, {1}, NONE, false, true},
    {SYS_chmod, {HOW_MODE}, {NONE}, {0}, NONE, true, false},
#endif
#ifdef SYS_renameat
    {SYS_renameat, {HOW_NAME, HOW_NAME | HOW_MOVED}, {0, 2}, {1, 3}, NONE, false, false},
#endif
    {SYS_openat, {HOW_WRITE}, {0}, {1}, 2, true, false},
    {SYS_openat2, {HOW_WRITE}, {0}, {1}, 2, true, false},
    {SYS_renameat2, {HOW_NAME, HOW_NAME | HOW_MOVED}, {0, 2}, {1, 3}, NONE, false, false},
    {SYS_unlinkat, {HOW_NAME}, {0}, {1}, NONE, false, false},
    {SYS_mkdirat, {HOW_NAME}, {0}, {1}, NONE, false, true},
    {SYS_mknodat, {HOW_NAME}, {0}, {1}, NONE, false, true},
    {SYS_linkat, {HOW_MODE, HOW_NAME}, {0, 2}, {1, 3}, NONE, false, true},
    {SYS_symlinkat, {HOW_NAME}, {1}, {2}, NONE, false, true},
    {SYS_truncate, {HOW_WRITE}, {NONE}, {0}, NONE, true, false},
    {SYS_fchmodat, {HOW_MODE}, {0}, {1}, NONE, true, false},
    {SYS_fchmod, {HOW_MODE}, {0}, {NONE}, NONE, false, false},
};

bool file_call_opens(struct file_name *name, uint64_t flags) {
  if ((flags & TMPFILE) != 0 || (flags & O_PATH) != 0) return false;
  name->how = 0;
  if ((flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0) name->how |= HOW_WRITE;
  if ((flags & O_CREAT) != 0) name->how |= HOW_NAME;
  name->makes = true;
  name->exclusive = (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
  name->follow = (flags & O_NOFOLLOW) == 0 && !name->exclusive;
  return name->how != 0;
}

/* fchmodat2 passes its flags in a register, visible to a filter. */
static int name_of_fchmodat2(const struct seccomp_data *call, struct file_name *name) {
  uint64_t flags = call->args[3];
  *name = (struct file_name){.by_descriptor = (flags & AT_EMPTY_PATH) != 0,
                             .follow = (flags & AT_SYMLINK_NOFOLLOW) == 0,
                             .how = HOW_MODE,
                             .folder = (int)call->args[0],
                             .address = call->args[1]};
  return 1;
}

static const struct shape *shape_of(int number) {
  for (size_t i = 0; i < sizeof SHAPES / sizeof *SHAPES; i++) {
    if (SHAPES[i].number == number) return &SHAPES[i];
  }
  return NULL;
}

bool file_call_is_one(int number) {
  return number == CALL_FCHMODAT2 || shape_of(number) != NULL;
}

int file_call_names(const struct seccomp_data *call, struct file_name names[FILE_NAMES_MAX]) {
  if (call->arch != OWN_AUDIT) return -1;
  if (call->nr == CALL_FCHMODAT2) return name_of_fchmodat2(call, names);
  const struct shape *shape = shape_of(call->nr);
  if (shape == NULL) return -1;
  int count = 0;
  for (int i = 0; i < FILE_NAMES_MAX && shape->how[i] != 0; i++) {
    struct file_name *name = &names[count++];
    *name = (struct file_name){.by_descriptor = shape->text[i] == NONE,
                               .follow = shape->follow,
                               .makes = shape->makes,
                               .removes = !shape->makes && shape->how[0] == HOW_NAME && shape->how[1] == 0,
                               .exchanged = call->nr == SYS_renameat2 && (call->args[4] & EXCHANGE) != 0,
                               .how = shape->how[i],
                               .folder = shape->folder[i] == NONE ? AT_FDCWD : (int)call->args[shape->folder[i]],
                               .address = shape->text[i] == NONE ? 0 : call->args[shape->text[i]]};
  }
  if (call->nr == SYS_linkat) {
    names[0].follow = (call->args[4] & AT_SYMLINK_FOLLOW) != 0;
    names[0].by_descriptor = (call->args[4] & AT_EMPTY_PATH) != 0;
  }
  if (shape->flags == NONE) return count;
  if (call->nr == SYS_openat2) names[0].open_how = call->args[shape->flags];
  else if (!file_call_opens(&names[0], call->args[shape->flags])) return 0;
  return count;
}
