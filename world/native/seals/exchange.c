#define _GNU_SOURCE
#include "seals/exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* RENAME_NOREPLACE and RENAME_EXCHANGE of linux/fs.h. */
#define NO_REPLACE 1U
#define EXCHANGE 2U

enum { TARGET_FOLDER = 3, STAGE_FOLDER = 4 };

static int exchange(const char *staged, const char *target) {
  return (int)syscall(SYS_renameat2, STAGE_FOLDER, staged, TARGET_FOLDER, target, EXCHANGE);
}

static int give_name(const char *staged, const char *target) {
  return (int)syscall(SYS_renameat2, STAGE_FOLDER, staged, TARGET_FOLDER, target, NO_REPLACE);
}

static int failed(void) {
  printf("%d\n", errno);
  return EXCHANGE_FAILED;
}

/* Compares all but ctime, which the exchange itself changes. */
static bool is_same(int folder, const char *name, char **words) {
  struct stat status;
  if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0) return false;
  return S_ISREG(status.st_mode) && status.st_nlink == 1 && status.st_ino == strtoull(words[0], NULL, 10) &&
         status.st_mtim.tv_sec == strtoll(words[1], NULL, 10) && status.st_mtim.tv_nsec == strtol(words[2], NULL, 10) &&
         status.st_size == strtoll(words[3], NULL, 10);
}

static int run(const char *staged, const char *target, char **words) {
  if (strcmp(words[0], "0") == 0)
    return give_name(staged, target) == 0 ? EXCHANGED : errno == EEXIST ? EXCHANGE_CHANGED : failed();
  if (!is_same(TARGET_FOLDER, target, words)) return EXCHANGE_CHANGED;
  if (exchange(staged, target) < 0) return failed();
  /* TARGET was replaced at the last moment: swap the names back. */
  if (!is_same(STAGE_FOLDER, staged, words)) return exchange(staged, target) < 0 ? failed() : EXCHANGE_CHANGED;
  return unlinkat(STAGE_FOLDER, staged, 0) < 0 ? failed() : EXCHANGED;
}

/* Exchanges the files and restores the mtime of the stage's folder: the hooks folder briefly held a new file
   but is otherwise unchanged, and a build that checks mtimes would start anew. WORDS: staged, target, then
   inode, seconds, nanoseconds and size of the replaced file, seconds and nanoseconds of the stage's
   folder. */
int exchange_run(int count, char **words) {
  if (count != 8) return EXCHANGE_FAILED;
  int ended = run(words[0], words[1], words + 2);
  const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {strtoll(words[6], NULL, 10), strtol(words[7], NULL, 10)}};
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", STAGE_FOLDER);
  /* futimens(2) rejects O_PATH descriptors. A failure is ignored: the exchange is done, and the folder keeps
     the current time. */
  if (ended == EXCHANGED) (void)utimensat(AT_FDCWD, path, times, 0);
  return ended;
}
