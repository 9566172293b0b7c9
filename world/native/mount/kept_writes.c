#define _GNU_SOURCE
#include "mount/kept_writes.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/failure.h"

#define FOLDERS_MAX 256

static struct {
  int folder;
  struct timespec changed;
} kept[FOLDERS_MAX];
static size_t count;
static bool too_many; /* some folders are not watched: any of them may have been written */

int kept_writes_watch(int folder) {
  if (count == FOLDERS_MAX) {
    too_many = true;
    return 0;
  }
  int copy = fcntl(folder, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return -1;
  kept[count++].folder = copy;
  return 0;
}

void kept_writes_let_go(void) {
  while (count > 0) close(kept[--count].folder);
}

/* Not the mtime: a copy-up restores the folder's mtime (the kernel's ovl_copy_up). */
static struct timespec change_time(int folder) {
  struct stat status;
  if (fstat(folder, &status) < 0) fail_world("kept writes", "", errno);
  return status.st_ctim;
}

void kept_writes_start(void) {
  for (size_t i = 0; i < count; i++) kept[i].changed = change_time(kept[i].folder);
}

uint64_t kept_writes_descriptors(void) {
  return count;
}

bool kept_writes_any(void) {
  for (size_t i = 0; i < count; i++) {
    struct timespec now = change_time(kept[i].folder);
    if (now.tv_sec != kept[i].changed.tv_sec || now.tv_nsec != kept[i].changed.tv_nsec) return true;
  }
  return too_many;
}
