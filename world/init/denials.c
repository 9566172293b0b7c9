#define _GNU_SOURCE
#include "denials.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/stat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "failure.h"
#include "mount_api.h"
#include "rules.h"

#define STEP "denied name"
#define BUCKETS 1024
#define MASK_ATTRIBUTES (ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV | ATTR_NOEXEC)

struct known {
  struct known *next;
  char path[];
};

static int root, mask_file, mask_folder;
static struct known *names[BUCKETS];
static size_t count;

static int open_or_fail(const char *path, int flags) {
  int fd = open(path, O_PATH | O_CLOEXEC | flags);
  if (fd < 0) fail_world(STEP, path, errno);
  return fd;
}

void denials_open(void) {
  root = open_or_fail("/", O_DIRECTORY);
  mask_file = open_or_fail(MASK_FILE, 0);
  mask_folder = open_or_fail(MASK_FOLDER, O_DIRECTORY);
}

static struct known **slot(const char *path) {
  uint32_t hash = 2166136261U; /* FNV-1a */
  for (const char *at = path; *at != 0; at++) hash = (hash ^ (uint8_t)*at) * 16777619U;
  struct known **link = &names[hash % BUCKETS];
  while (*link != NULL && strcmp((*link)->path, path) != 0) link = &(*link)->next;
  return link;
}

bool denial_known(const char *path) {
  return *slot(path) != NULL;
}

void denial_forget(const char *path) {
  struct known **link = slot(path);
  struct known *gone = *link;
  if (gone == NULL) return;
  *link = gone->next;
  free(gone);
  count--;
}

void denial_remember(const char *path) {
  struct known **link = slot(path);
  if (*link != NULL) return;
  *link = calloc(1, sizeof **link + strlen(path) + 1);
  if (*link == NULL) fail_world(STEP, path, ENOMEM);
  strcpy((*link)->path, path);
  count++;
}

size_t denials_count(void) {
  return count;
}

/* It vanished, or a link took the place of a folder on the way: then it is not that name any more. */
static bool is_gone(int error) {
  return error == ENOENT || error == ENOTDIR || error == ELOOP || error == ENAMETOOLONG;
}

static bool is_mount_root(int fd) {
  struct statx status;
  if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, 0U, &status) < 0) return false;
  return (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

/* A copy of the tree `source`, on top of what `place` is. */
static int cover(int place, int source, uint64_t attributes) {
  int tree = mount_copy(source);
  if (tree < 0) return -1;
  int result = mount_restrict(tree, attributes) < 0 ? -1 : mount_place(tree, place);
  int error = errno;
  close(tree);
  errno = error;
  return result;
}

/* The kernel does not rename a mount point (EBUSY), so a folder bound onto itself stays where it is. */
static bool pin(const char *path) {
  int folder = open_below(root, path, O_PATH | O_NOFOLLOW | O_DIRECTORY, WALK_NO_SYMLINKS);
  if (folder < 0 && is_gone(errno)) return false;
  if (folder < 0 || (!is_mount_root(folder) && cover(folder, folder, 0) < 0)) fail_world(STEP, path, errno);
  close(folder);
  return true;
}

static bool pin_between(const char *zone, const char *path) {
  char folder[PATH_MAX];
  const char *part = path + (strcmp(zone, "/") == 0 ? 0 : strlen(zone));
  for (const char *end = strchr(part + 1, '/'); end != NULL; end = strchr(end + 1, '/')) {
    snprintf(folder, sizeof folder, "%.*s", (int)(end - path), path);
    if (!pin(folder)) return false;
  }
  return true;
}

/* What is only not to be written is bound onto itself, read-only; a link is thereby kept from being replaced. */
static int deny(int place, unsigned denies) {
  struct stat status;
  if ((denies & DENY_READ) == 0) return cover(place, place, ATTR_RDONLY);
  if (fstat(place, &status) < 0) return -1;
  return cover(place, S_ISDIR(status.st_mode) ? mask_folder : mask_file, MASK_ATTRIBUTES);
}

bool denial_apply(const char *zone, const char *path, unsigned denies, bool pins) {
  /* From shallow to deep, and before the name is opened: each pin is a mount of its own above it. */
  if (pins && !pin_between(zone, path)) return false;
  int place = open_below(root, path, O_PATH | O_NOFOLLOW, WALK_NO_SYMLINKS);
  if (place < 0 && is_gone(errno)) return false;
  if (place < 0) fail_world(STEP, path, errno);
  int result = deny(place, denies);
  int error = errno;
  close(place);
  /* Unlinked between the two calls. */
  if (result < 0 && error == ENOENT) return false;
  if (result < 0) fail_world(STEP, path, error);
  if (pins) denial_remember(path);
  return true;
}

bool denial_holds(const char *path) {
  int place = open_below(root, path, O_PATH | O_NOFOLLOW, WALK_NO_SYMLINKS);
  if (place < 0) return false;
  bool holds = is_mount_root(place);
  close(place);
  return holds;
}
