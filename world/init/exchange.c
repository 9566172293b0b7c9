#define _GNU_SOURCE
#include "exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* RENAME_EXCHANGE of linux/fs.h. */
#define EXCHANGE 2U

enum { TARGET_FOLDER = 3, STAGE_FOLDER = 4 };

static int exchange(const char *staged, const char *target) {
  return (int)syscall(SYS_renameat2, STAGE_FOLDER, staged, TARGET_FOLDER, target, EXCHANGE);
}

static int failed(void) {
  printf("%d\n", errno);
  return EXCHANGE_FAILED;
}

/* Not its ctime, which the exchange itself changes. */
static bool is_same(int folder, const char *name, char **words) {
  struct stat status;
  if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0) return false;
  return S_ISREG(status.st_mode) && status.st_nlink == 1 && status.st_ino == strtoull(words[0], NULL, 10) &&
         status.st_mtim.tv_sec == strtoll(words[1], NULL, 10) && status.st_mtim.tv_nsec == strtol(words[2], NULL, 10) &&
         status.st_size == strtoll(words[3], NULL, 10);
}

int exchange_run(int count, char **words) {
  if (count != 6) return EXCHANGE_FAILED;
  const char *staged = words[0], *target = words[1];
  if (!is_same(TARGET_FOLDER, target, words + 2)) return EXCHANGE_CHANGED;
  if (exchange(staged, target) < 0) return failed();
  /* What another program put there in the last moment gets its name back. */
  if (!is_same(STAGE_FOLDER, staged, words + 2)) return exchange(staged, target) < 0 ? failed() : EXCHANGE_CHANGED;
  return unlinkat(STAGE_FOLDER, staged, 0) < 0 ? failed() : EXCHANGED;
}
