#define _GNU_SOURCE
#include "changes/changes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "changes/change_folders.h"
#include "changes/change_walk.h"
#include "lib/fields.h"

/* Two paths, a letter and two NULs. */
#define QUESTION_MAX (2 * PATH_MAX + 3)
/* After a listing of more changes the process ends, to free its memory. */
#define LARGE 50000

/* False at the end of the input. Exits on a truncated question. */
static bool read_all(uint8_t *bytes, size_t length) {
  size_t taken = 0;
  while (taken < length) {
    ssize_t count = read(STDIN_FILENO, bytes + taken, length - taken);
    if (count < 0 && errno == EINTR) continue;
    if (count == 0 && taken == 0) return false;
    if (count <= 0) _exit(1);
    taken += (size_t)count;
  }
  return true;
}

/* Follows no link: the broker asked with real paths. */
static int open_tree(const char *path) {
  struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
  return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
}

static void tell(const struct change *change) {
  fprintf(stdout, "%c%o %o %llu %s", change->kind, (unsigned)change->before, (unsigned)change->after,
          (unsigned long long)change->size, change->path);
  fputc(0, stdout);
}

/* Writes the last record: E, then the hash or `-`, and whether changes were left out. */
static void tell_end(const struct walk_result *result, struct change *const *sorted) {
  char hex[SHA256_HEX + 1] = "-";
  const struct change_list *changes = &result->changes;
  bool whole = !result->unhashed && !changes->full && changes->count > 0;
  if (whole) {
    change_hash(sorted, changes->count, hex);
    hex[SHA256_HEX] = 0;
  }
  fprintf(stdout, "E%s %d", hex, changes->full);
  fputc(0, stdout);
}

/* Lists the changes, and returns their number. */
static uint32_t answer(int upper, int lower) {
  struct walk_result result;
  change_walk(upper, lower, &result);
  struct change **sorted = change_sorted(&result.changes);
  if (sorted == NULL) result.changes.full |= result.changes.count > 0;
  for (uint32_t i = 0; sorted != NULL && i < result.changes.count; i++) tell(sorted[i]);
  tell_end(&result, sorted);
  uint32_t count = result.changes.count;
  free(sorted);
  change_list_free(&result.changes);
  return count;
}

static void refuse(const char *path) {
  fprintf(stdout, "F%d %s", errno, path);
  fputc(0, stdout);
}

/* Answers `MARKS UPPER NUL LOWER NUL`; MARKS is t or u: the prefix of the marks that the overlay reads. */
static bool serve(void) {
  uint8_t length_bytes[4];
  char question[QUESTION_MAX];
  if (!read_all(length_bytes, sizeof length_bytes)) return false;
  size_t length = read_u32(length_bytes);
  if (length < 3 || length > sizeof question || !read_all((uint8_t *)question, length)) _exit(1);
  const char *upper_path = question + 1;
  const char *lower_path = memchr(upper_path, 0, length - 1);
  if (lower_path == NULL || question[length - 1] != 0 || ++lower_path == question + length) _exit(1);
  folders_take_marks(question[0] == 'u');
  int upper = open_tree(upper_path);
  if (upper < 0) refuse(upper_path);
  int lower = upper < 0 ? -1 : open_tree(lower_path);
  if (upper >= 0 && lower < 0) refuse(lower_path);
  bool large = lower >= 0 && answer(upper, lower) > LARGE;
  if (upper >= 0) close(upper);
  if (lower >= 0) close(lower);
  return fflush(stdout) == 0 && !large;
}

void changes_run(void) {
  signal(SIGPIPE, SIG_DFL);
  /* The process reads files of other users but runs none, and gains no rights through them. */
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) _exit(1);
  while (serve()) {
  }
  _exit(0);
}
