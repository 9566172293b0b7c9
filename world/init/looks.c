#define _GNU_SOURCE
#include "looks.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "change_content.h"

/* A path that could be looked at, and a name below it. */
#define NAME_BYTES (2 * PATH_MAX)
/* Names that one process takes in a row: mostly of one folder. */
#define BLOCK 64
/* From so many on two processes look: a second one costs as much as some dozen looks. */
#define FOR_TWO 1000

static int root;
static char **names;
static size_t count;
static struct look *looks; /* shared by both */

/* The folder of the last name: mostly it is the next one's. */
static struct {
  char path[NAME_BYTES];
  int fd; /* -1: there is none, or only behind a link */
  int error;
} parent = {.path = {'/'}, .fd = -1};

static int open_folder(int folder, const char *path, uint64_t resolve) {
  struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS | resolve};
  return (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
}

static int folder_of(const char *path) {
  if (strcmp(parent.path, path) == 0) return parent.fd;
  if (parent.fd >= 0) close(parent.fd);
  snprintf(parent.path, sizeof parent.path, "%s", path);
  parent.fd = open_folder(root, path[0] == 0 ? "." : path, RESOLVE_BENEATH);
  parent.error = parent.fd < 0 ? errno : 0;
  return parent.fd;
}

/* Where that name stands: its folder is open, or `folder` is negative. Cuts the name in two for as long as it is looked at. */
static struct place place_of(char *name, char **cut) {
  *cut = strrchr(name, '/');
  if (*cut != NULL) **cut = 0;
  return (struct place){.folder = folder_of(*cut == NULL ? "" : name), .name = *cut == NULL ? name : *cut + 1};
}

static bool is_absent(int error) {
  return error == ENOENT || error == ENOTDIR || error == ELOOP;
}

static void look_at(char *name, struct look *look) {
  struct stat status;
  char *cut;
  struct place place = place_of(name, &cut);
  int error = place.folder < 0 ? parent.error : 0;
  if (error == 0 && fstatat(place.folder, place.name, &status, AT_SYMLINK_NOFOLLOW) < 0) error = errno;
  if (cut != NULL) *cut = '/';
  look->state = error == 0 ? LOOK_BARE : is_absent(error) ? LOOK_GONE : LOOK_UNSEEN;
  if (error != 0) return;
  look->mode = status.st_mode;
  look->size = (uint64_t)status.st_size;
}

static enum look_state state_of(enum content content) {
  switch (content) {
    case CONTENT_TAKEN:
      return LOOK_DIGEST;
    case CONTENT_NONE:
      return LOOK_BARE;
    case CONTENT_TOO_MUCH:
      return LOOK_TOO_MUCH;
    case CONTENT_UNREADABLE:
      break;
  }
  return LOOK_UNREADABLE;
}

static void read_content(char *name, struct look *look) {
  static uint64_t budget = CONTENT_MAX;
  char *cut, hex[SHA256_HEX + 1];
  if (look->state != LOOK_BARE || (!S_ISREG(look->mode) && !S_ISLNK(look->mode))) return;
  struct stat status = {.st_mode = look->mode, .st_size = (off_t)look->size};
  struct place place = place_of(name, &cut);
  place.status = &status;
  look->state = place.folder < 0 ? LOOK_UNREADABLE : state_of(content_hash(&place, &budget, hex));
  if (cut != NULL) *cut = '/';
  if (look->state == LOOK_DIGEST) memcpy(look->digest, hex, SHA256_HEX);
}

/* Every other block, from that one on. */
static void each_from(size_t first, void (*take)(char *name, struct look *look)) {
  for (size_t block = first; block * BLOCK < count; block += 2) {
    for (size_t at = block * BLOCK; at < count && at < (block + 1) * BLOCK; at++) take(names[at], &looks[at]);
  }
}

static void each(void (*take)(char *name, struct look *look)) {
  pid_t self = getpid();
  pid_t pid = count < FOR_TWO ? -1 : fork();
  if (pid == 0) {
    /* Gone with whoever waits for it, also when that is gone before this is said. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != self) _exit(1);
    each_from(1, take);
    _exit(0);
  }
  int status;
  each_from(0, take);
  /* Also where there is no room for a second process. */
  if (pid < 0) return each_from(1, take);
  if (waitpid(pid, &status, 0) != pid || status != 0) _exit(1);
}

static bool too_much(void) {
  uint64_t bytes = 0;
  for (size_t at = 0; at < count; at++) {
    if (looks[at].state != LOOK_BARE || !S_ISREG(looks[at].mode)) continue;
    if (looks[at].size > CONTENT_MAX - bytes) return true;
    bytes += looks[at].size;
  }
  return false;
}

static bool read_names(void) {
  size_t room = 0;
  char *name = NULL;
  ssize_t length;
  for (size_t size = 0; (length = getdelim(&name, &room, 0, stdin)) > 0;) {
    /* Half a name ends us. */
    if (name[length - 1] != 0 || length > NAME_BYTES) return false;
    if (count == size) {
      size = size == 0 ? 1024 : 2 * size;
      names = reallocarray(names, size, sizeof *names);
      if (names == NULL) return false;
    }
    names[count] = strdup(name);
    if (names[count++] == NULL) return false;
  }
  return true;
}

void looks_run(const char *path) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) _exit(1);
  signal(SIGPIPE, SIG_DFL);
  root = open_folder(AT_FDCWD, path, 0);
  if (root < 0 || !read_names()) _exit(1);
  if (count == 0) _exit(0);
  looks = mmap(NULL, count * sizeof *looks, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (looks == MAP_FAILED) _exit(1);
  each(look_at);
  if (!too_much()) each(read_content);
  _exit(fwrite(looks, sizeof *looks, count, stdout) == count && fflush(stdout) == 0 ? 0 : 1);
}
