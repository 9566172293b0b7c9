#define _GNU_SOURCE
#include "deny/denials.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/stat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "deny/rules.h"
#include "lib/descriptors.h"
#include "lib/failure.h"
#include "lib/mount_api.h"

#define STEP "denied name"
#define BUCKETS 1024
#define MASK_ATTRIBUTES (ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV | ATTR_NOEXEC)

/* Descriptors kept under seals; a project has a few repositories, with two or three sealed paths each. */
#define UNDER_MAX 256
/* Upper bound as a fraction of PID 1's descriptor limit. */
#define UNDER_PART 8

struct known {
  struct known *next;
  int under; /* -1: not kept */
  bool asks;
  bool settled; /* sealed without a pin: denial_settle */
  bool expected; /* not yet at its final name: denial_expect */
  char path[];
};

static int root, mask_file, mask_folder;
static struct known *names[BUCKETS];
static size_t count, kept;
static size_t room;

static int open_or_fail(const char *path, int flags) {
  int fd = open(path, O_PATH | O_CLOEXEC | flags);
  if (fd < 0) fail_world(STEP, path, errno);
  return fd;
}

void denials_open(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) < 0) fail_world(STEP, "rlimit", errno);
  room = limit.rlim_max / UNDER_PART < UNDER_MAX ? limit.rlim_max / UNDER_PART : UNDER_MAX;
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

static void denial_drop_under(struct known *known) {
  if (known->under < 0) return;
  close(known->under);
  known->under = -1;
  kept--;
}

void denial_forget(const char *path) {
  struct known **link = slot(path);
  struct known *gone = *link;
  if (gone == NULL) return;
  *link = gone->next;
  denial_drop_under(gone);
  free(gone);
  count--;
}

void denial_remember(const char *path) {
  struct known **link = slot(path);
  if (*link != NULL) return;
  *link = calloc(1, sizeof **link + strlen(path) + 1);
  if (*link == NULL) fail_world(STEP, path, ENOMEM);
  strcpy((*link)->path, path);
  (*link)->under = -1;
  count++;
}

int denial_under(const char *path) {
  const struct known *known = *slot(path);
  return known == NULL ? -1 : known->under;
}

void denial_keep_under(const char *path, int under) {
  struct known *known = *slot(path);
  if (known != NULL) denial_drop_under(known);
  if (known == NULL || kept >= room) {
    close(under);
    return;
  }
  known->under = under;
  kept++;
}

bool denials_ask_of(const char *leaf) {
  return rules_may_end(DENY_ASKS, leaf);
}

static void mark_asking(const char *path) {
  struct known *known = *slot(path);
  known->asks = true;
}

bool denial_asks(const char *path) {
  const struct known *known = *slot(path);
  return known != NULL && known->asks;
}

size_t denials_descriptors(void) {
  return room;
}

size_t denials_count(void) {
  return count;
}

/* True when the name vanished, or a link replaced a folder of the path: the path no longer leads to the
   denied name. */
static bool is_gone(int error) {
  return error == ENOENT || error == ENOTDIR || error == ELOOP || error == ENAMETOOLONG;
}

/* Mounts a copy of the tree `source` over `place`. */
static int cover(int place, int source, uint64_t attributes) {
  int tree = mount_copy(source);
  if (tree < 0) return -1;
  int result = mount_restrict(tree, attributes) < 0 ? -1 : mount_place(tree, place);
  return close_keeping_errno(tree, result);
}

/* Keeps a folder in place. */
static bool pin(const char *path) {
  int folder = open_below(root, path, O_PATH | O_NOFOLLOW | O_DIRECTORY, WALK_NO_SYMLINKS);
  if (folder < 0 && is_gone(errno)) return false;
  if (folder < 0 || mount_pin(folder) < 0) fail_world(STEP, path, errno);
  close(folder);
  return true;
}

static bool pin_between(const char *top, const char *path) {
  char folder[PATH_MAX];
  const char *part = path + (strcmp(top, "/") == 0 ? 0 : strlen(top));
  for (const char *end = strchr(part + 1, '/'); end != NULL; end = strchr(end + 1, '/')) {
    snprintf(folder, sizeof folder, "%.*s", (int)(end - path), path);
    if (!pin(folder)) return false;
  }
  return true;
}

bool denial_close(const char *top, const char *folder) {
  if (!pin_between(top, folder)) return false;
  int place = open_below(root, folder, O_PATH | O_NOFOLLOW | O_DIRECTORY, WALK_NO_SYMLINKS);
  if (place < 0) return false;
  bool closed = !mount_is_root(place) && cover(place, place, ATTR_RDONLY) == 0;
  close(place);
  return closed;
}

void denial_open_again(const char *folder) {
  int place = open_below(root, folder, O_PATH | O_NOFOLLOW | O_DIRECTORY, WALK_NO_SYMLINKS);
  /* Folder removed meanwhile, and the mount with it. */
  if (place < 0 && is_gone(errno)) return;
  if (place < 0 || (mount_is_root(place) && mount_allow_one(place, ATTR_RDONLY) < 0)) fail_world(STEP, folder, errno);
  close(place);
}

/* Denies a name. Without DENY_READ the file is bound onto itself, read-only; the mount also keeps a link from
   being replaced. */
static int deny(int place, unsigned denies) {
  struct stat status;
  if ((denies & DENY_READ) == 0) return cover(place, place, ATTR_RDONLY);
  if (fstat(place, &status) < 0) return -1;
  return cover(place, S_ISDIR(status.st_mode) ? mask_folder : mask_file, MASK_ATTRIBUTES);
}

int denial_seal(int place) {
  return mount_is_root(place) ? 0 : cover(place, place, ATTR_RDONLY);
}

int denial_open(const char *path, int flags) {
  return open_below(root, path, flags, WALK_NO_SYMLINKS);
}

bool denials_below(const char *folder, bool (*holds)(const char *path)) {
  size_t length = strlen(folder);
  for (size_t i = 0; i < BUCKETS; i++) {
    for (const struct known *known = names[i]; known != NULL; known = known->next) {
      if (strncmp(known->path, folder, length) == 0 && known->path[length] == '/' && !holds(known->path)) return false;
    }
  }
  return true;
}

int denials_root(void) {
  return root;
}

bool denial_settle(const char *path, unsigned denies) {
  int place = open_below(root, path, O_PATH | O_NOFOLLOW, WALK_NO_SYMLINKS);
  if (place < 0) return false;
  if (denial_seal(place) < 0) {
    close(place);
    return false;
  }
  denial_remember(path);
  (*slot(path))->settled = true;
  if ((denies & DENY_ASKS) != 0) mark_asking(path);
  denial_keep_under(path, place);
  return true;
}

static struct known *find_under(const struct stat *wanted) {
  struct stat status;
  for (size_t i = 0; i < BUCKETS; i++) {
    for (struct known *known = names[i]; known != NULL; known = known->next) {
      if (known->under < 0 || fstat(known->under, &status) < 0) continue;
      if (status.st_ino == wanted->st_ino && status.st_dev == wanted->st_dev) return known;
    }
  }
  return NULL;
}

/* Forgets expected files without a final name: their makers removed them. */
static void forget_expected(void) {
  struct stat status;
  for (size_t i = 0; i < BUCKETS; i++) {
    for (struct known *known = names[i], *next; known != NULL; known = next) {
      next = known->next;
      if (known->expected && (known->under < 0 || fstat(known->under, &status) < 0 || status.st_nlink == 0)) denial_forget(known->path);
    }
  }
}

void denial_expect(const char *path, int place) {
  forget_expected();
  denial_remember(path);
  struct known *known = *slot(path);
  known->asks = known->expected = true;
  denial_keep_under(path, place);
}

bool denial_expected(const char *path) {
  const struct known *known = *slot(path);
  return known != NULL && known->expected;
}

/* Renames a known git folder with its files: git folders are known without a descriptor, so a file inside
   identifies the folder. */
static void adopt_folder(char *from, const char *to) {
  char folder[PATH_MAX];
  *strrchr(from, '/') = 0;
  if (!denial_known(from)) return;
  denial_forget(from);
  snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(to, '/') - to), to);
  denial_remember(folder);
}

bool denial_adopt(const char *path) {
  struct stat status;
  char from[PATH_MAX];
  int place = open_below(root, path, O_PATH | O_NOFOLLOW, WALK_NO_SYMLINKS);
  if (place < 0) return false;
  struct known *known = fstat(place, &status) < 0 ? NULL : find_under(&status);
  close(place);
  if (known == NULL) return false;
  int under = known->under;
  bool asks = known->asks, expected = known->expected;
  snprintf(from, sizeof from, "%s", known->path);
  known->under = -1;
  kept--;
  denial_forget(from);
  denial_remember(path);
  if (asks) mark_asking(path);
  denial_keep_under(path, under);
  /* An expected file moved alone, without its git folder. */
  if (!expected) adopt_folder(from, path);
  return true;
}

/* A pin would cover the mount that identifies a seal without pins (denial_under). */
static bool is_settled(const char *path) {
  const struct known *known = *slot(path);
  return known != NULL && known->settled;
}

bool denial_apply(const char *top, const char *path, unsigned denies, bool pins) {
  /* Pin from shallow to deep, before opening the name: each pin is a new mount on the way to the name. */
  if (pins && !is_settled(path) && !pin_between(top, path)) return false;
  int place = open_below(root, path, O_PATH | O_NOFOLLOW, WALK_NO_SYMLINKS);
  if (place < 0 && is_gone(errno)) return false;
  if (place < 0) fail_world(STEP, path, errno);
  int result = deny(place, denies);
  int error = errno;
  if (result < 0) close(place);
  /* Unlinked between the two calls. */
  if (result < 0 && error == ENOENT) return false;
  if (result < 0) fail_world(STEP, path, error);
  if (pins) denial_remember(path);
  if (pins && (denies & DENY_ASKS) != 0) mark_asking(path);
  if (pins && (denies & DENY_READ) == 0) denial_keep_under(path, place);
  else close(place);
  return true;
}

bool denial_holds(const char *path) {
  int place = open_below(root, path, O_PATH | O_NOFOLLOW, WALK_NO_SYMLINKS);
  if (place < 0) return false;
  bool holds = mount_is_root(place);
  close(place);
  return holds;
}
