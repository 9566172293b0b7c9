#define _GNU_SOURCE
#include "digests.h"

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

#include "change_content.h"
#include "sha256.h"

/* A path that could be looked at, and a name below it. */
#define NAME_BYTES (2 * PATH_MAX)

static int root;
static uint64_t budget = CONTENT_MAX;

/* The folder of the last name: they come in order, so that it is mostly the next one's. */
static struct {
  char path[NAME_BYTES];
  int fd; /* -1: there is none, or only behind a link */
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
  return parent.fd;
}

static void digest(char *name) {
  char hex[SHA256_HEX + 1] = {0};
  struct stat status;
  char *slash = strrchr(name, '/');
  if (slash != NULL) *slash = 0;
  struct place place = {folder_of(slash == NULL ? "" : name), slash == NULL ? name : slash + 1, &status};
  enum content content = CONTENT_UNREADABLE;
  if (place.folder >= 0 && fstatat(place.folder, place.name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
    content = content_hash(&place, &budget, hex);
  }
  puts(content == CONTENT_TAKEN ? hex : content == CONTENT_NONE ? "-" : "?");
}

void digests_run(const char *path) {
  char *name = NULL;
  size_t room = 0;
  ssize_t length;
  signal(SIGPIPE, SIG_DFL);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) _exit(1);
  root = open_folder(AT_FDCWD, path, 0);
  if (root < 0) _exit(1);
  while ((length = getdelim(&name, &room, 0, stdin)) > 0) {
    /* Half a name ends us. */
    if (name[length - 1] != 0 || length > NAME_BYTES) _exit(1);
    digest(name);
  }
  _exit(fflush(stdout) == 0 ? 0 : 1);
}
