#define _GNU_SOURCE
#include "changes/held.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "changes/answers.h"
#include "changes/held_change.h"
#include "changes/overlay_marks.h"
#include "changes/overlay_walk.h"
#include "changes/paths.h"

/* The file's name in held-store.ts. */
#define SEEN "seen"
/* The paths of some 400,000 changes. Every reader of the rows takes several times their bytes. */
#define ROWS_MAX (64UL * 1024 * 1024)
#define FOLDER (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

static void answer_error(struct text *answer, const char *what, int error) {
  answer_failed(answer, what, error == ESTALE ? "the path now leads to another folder" : strerror(error));
}

/* Opens the folder with this `identity` (device:inode; empty: any folder). -1 with errno; ESTALE: another
   folder. */
static int open_folder(const char *path, const char *identity) {
  struct stat status;
  char found[64];
  int fd = open(path, FOLDER);
  if (fd < 0 || *identity == 0) return fd;
  int error = ESTALE;
  if (fstat(fd, &status) < 0) error = errno;
  snprintf(found, sizeof found, "%ju:%ju", (uintmax_t)status.st_dev, (uintmax_t)status.st_ino);
  if (error == ESTALE && strcmp(found, identity) == 0) return fd;
  close(fd);
  errno = error;
  return -1;
}

/* Locks the project until the process ends: no other process changes the project meanwhile. */
static void lock(const char *path, struct text *answer) {
  int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return answer_error(answer, path, errno);
  while (flock(fd, LOCK_EX) < 0) {
    if (errno != EINTR) return answer_error(answer, path, errno);
  }
  text_field(answer, "ok");
}

static bool take_row(void *context, const struct row *row) {
  struct text *rows = context;
  row_write(rows, row);
  return rows->length <= ROWS_MAX;
}

/* -1 with errno; EFBIG: more rows than ROWS_MAX bytes. */
static int scan_rows(int upper, int project, struct text *rows) {
  if (overlay_walk(upper, project, LOOK_TO_APPLY, take_row, rows) < 0) return -1;
  if (rows->length <= ROWS_MAX) return 0;
  errno = EFBIG;
  return -1;
}

static void answer_unscanned(struct text *answer, const char *what) {
  if (errno != EFBIG) return answer_error(answer, what, errno);
  answer->length = 0;
  text_field(answer, "large");
}

static void scan(const char *layer, const char *project, const char *identity, struct text *answer) {
  int upper = open(layer, FOLDER | O_NOFOLLOW);
  if (upper < 0) return answer_error(answer, layer, errno);
  int lower = open_folder(project, identity);
  if (lower < 0) answer_error(answer, project, errno);
  else {
    text_field(answer, "ok");
    if (scan_rows(upper, lower, answer) < 0) answer_unscanned(answer, "held changes");
    close(lower);
  }
  close(upper);
}

/* Keeps a first scan as rows in the file `seen` of the layers, for a later comparison. Answers without
   rows. */
static void look(const char *layers, const char *project, const char *identity, struct text *answer) {
  struct text rows = {0};
  struct stat status;
  int folder = open(layers, FOLDER | O_NOFOLLOW);
  if (folder < 0) return answer_error(answer, layers, errno);
  bool looked = fstatat(folder, SEEN, &status, AT_SYMLINK_NOFOLLOW) == 0;
  int upper = looked ? -1 : openat(folder, "upper", FOLDER | O_NOFOLLOW);
  int lower = upper < 0 ? -1 : open_folder(project, identity);
  if (looked || (lower >= 0 && scan_rows(upper, lower, &rows) == 0 && text_write(&rows, folder, SEEN) == 0)) {
    text_field(answer, "ok");
  } else {
    answer_unscanned(answer, layers);
  }
  text_clear(&rows);
  if (lower >= 0) close(lower);
  if (upper >= 0) close(upper);
  close(folder);
}

/* Answers `none` without a regular file, otherwise its size and first bytes. */
static void content(const char *root, const char *identity, const char *path, const char *limit, struct text *answer) {
  const char *name;
  struct stat status;
  char piece[65536];
  long long left = atoll(limit);
  int top = open_folder(root, identity);
  if (top < 0) return answer_error(answer, root, errno);
  int parent = open_parent_of(top, path, &name);
  int fd = parent < 0 ? -1 : open_readable(parent, name, &status);
  int error = errno;
  if (parent >= 0) close(parent);
  close(top);
  bool absent = error == ENOENT || error == ENOTDIR || error == ELOOP || error == EINVAL || error == ENXIO;
  if (fd < 0 && !absent) return answer_error(answer, path, error);
  text_field(answer, fd < 0 ? "none" : "ok");
  if (fd < 0) return;
  text_format(answer, "%lld", (long long)status.st_size);
  while (left > 0) {
    ssize_t got = read(fd, piece, left < (long long)sizeof piece ? (size_t)left : sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) answer_error(answer, path, errno);
    if (got <= 0) break;
    text_add(answer, piece, (size_t)got);
    left -= got;
  }
  close(fd);
}

static bool serve(struct text_reader *reader, struct text *answer) {
  const char *verb = text_next(reader), *field[4] = {0};
  int count = 0;
  while (count < 4 && (field[count] = text_next(reader)) != NULL) count++;
  /* A change goes on to its end without a broker. */
  answers_end_with_broker(verb == NULL || (strcmp(verb, "change") != 0 && strcmp(verb, "recover") != 0));
  if (count == 1 && strcmp(verb, "lock") == 0) lock(field[0], answer);
  else if (count == 3 && strcmp(verb, "scan") == 0) scan(field[0], field[1], field[2], answer);
  else if (count == 3 && strcmp(verb, "look") == 0) look(field[0], field[1], field[2], answer);
  else if (count == 4 && strcmp(verb, "content") == 0) content(field[0], field[1], field[2], field[3], answer);
  else if (count == 1 && strcmp(verb, "change") == 0) change_run(field[0], answer);
  else if (count == 1 && strcmp(verb, "recover") == 0) change_recover(field[0], answer);
  else answer_error(answer, "request", EPROTO);
  return true;
}

/* True with CAP_SYS_ADMIN. Without this capability worlds are made in a user namespace, as for ordinary
   users. */
static bool has_admin(void) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
  if (syscall(SYS_capget, &header, data) < 0) return false;
  return (data[CAP_TO_INDEX(CAP_SYS_ADMIN)].effective & CAP_TO_MASK(CAP_SYS_ADMIN)) != 0;
}

/* True for root of the whole host, who mounts overlays with `trusted.` marks; only root can read such
   marks. */
static bool is_host_root(void) {
  char map[64] = "";
  unsigned inside, outside, count;
  int fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t got = read(fd, map, sizeof map - 1);
  close(fd);
  if (geteuid() != 0 || got <= 0 || sscanf(map, "%u %u %u", &inside, &outside, &count) != 3) return false;
  return inside == 0 && outside == 0 && count == UINT32_MAX && has_admin();
}

static void write_map(const char *path, unsigned id) {
  char line[64];
  int length = snprintf(line, sizeof line, "%u %u 1", id, id);
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  /* A half-made namespace without a mapped user is worse than an exit. */
  if (fd < 0 || write(fd, line, (size_t)length) != length) exit(1);
  close(fd);
}

/* Enters a user namespace, where the owner of a file passes permission checks: a command may have taken away
   its own user's rights (`chmod 0`). Where the host forbids user namespaces, such files are reported as
   unreadable. */
static void enter_own_namespace(void) {
  unsigned uid = geteuid(), gid = getegid();
  if (uid == 0 || unshare(CLONE_NEWUSER) < 0) return;
  int fd = open("/proc/self/setgroups", O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, "deny", 4) != 4) exit(1);
  close(fd);
  write_map("/proc/self/uid_map", uid);
  write_map("/proc/self/gid_map", gid);
}

int held_run(void) {
  overlay_walk_allow_files();
  umask(0);
  marks_take(!is_host_root());
  enter_own_namespace();
  return answers_serve(serve);
}
