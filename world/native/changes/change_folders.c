#define _GNU_SOURCE
#include "changes/change_folders.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Bytes of pending paths: enough for a million folders. */
#define WAITING_MAX (256UL * 1024 * 1024)
#define READ_FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

void folders_add(struct folders *folders, const char *path, enum folder_kind kind) {
  size_t size = sizeof(struct waiting_folder) + strlen(path) + 1;
  struct waiting_folder *waiting = folders->bytes + size > WAITING_MAX ? NULL : malloc(size);
  if (waiting == NULL) {
    folders->full = true;
    return;
  }
  waiting->next = NULL;
  waiting->kind = kind;
  strcpy(waiting->path, path);
  folders->bytes += size;
  if (folders->first == NULL) folders->first = waiting;
  else folders->last->next = waiting;
  folders->last = waiting;
}

struct waiting_folder *folders_next(struct folders *folders) {
  struct waiting_folder *first = folders->first;
  if (first == NULL) return NULL;
  folders->first = first->next;
  folders->bytes -= sizeof *first + strlen(first->path) + 1;
  return first;
}

static int open_at(int folder, const char *path) {
  struct open_how how = {
      .flags = READ_FOLDER,
      .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
  };
  return (int)syscall(SYS_openat2, folder, *path == 0 ? "." : path, &how, sizeof how);
}

static bool marks_of_user;

void folders_take_marks(bool of_user) {
  marks_of_user = of_user;
}

/* Reads a mark from `trusted.`, or from `user.` for an overlay mounted with userxattr. */
static ssize_t mark_of(int fd, const char *trusted, const char *user, char *value, size_t size) {
  return fgetxattr(fd, marks_of_user ? user : trusted, value, size);
}

static void read_marks(struct open_folder *folder) {
  char value[8];
  ssize_t length = mark_of(folder->upper, "trusted.overlay.opaque", "user.overlay.opaque", value, sizeof value);
  if (length != 1) return;
  /* 'x': not opaque, but whiteouts may be regular files. */
  if (value[0] == 'x') folder->marks_whiteouts = true;
  if (value[0] == 'y' && folder->kind == FOLDER_MERGED) folder->kind = FOLDER_OPAQUE;
}

bool folder_open(int upper, int lower, const struct waiting_folder *waiting, struct open_folder *folder) {
  enum folder_kind kind = waiting->kind;
  *folder = (struct open_folder){.path = waiting->path, .kind = kind, .upper = -1, .lower = -1};
  if (kind != FOLDER_GONE && (folder->upper = open_at(upper, waiting->path)) < 0) return false;
  if (kind != FOLDER_NEW) folder->lower = open_at(lower, waiting->path);
  /* A folder removed meanwhile counts as missing; an unreadable folder cannot be compared. */
  if (kind != FOLDER_NEW && folder->lower < 0 && errno != ENOENT && errno != ENOTDIR) {
    folder_close(folder);
    return false;
  }
  if (folder->upper >= 0) read_marks(folder);
  return true;
}

void folder_close(const struct open_folder *folder) {
  if (folder->upper >= 0) close(folder->upper);
  if (folder->lower >= 0) close(folder->lower);
}

bool folder_has_whiteout(int folder, const char *name) {
  char value[8];
  int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return false;
  bool has = mark_of(fd, "trusted.overlay.whiteout", "user.overlay.whiteout", value, sizeof value) >= 0;
  close(fd);
  return has;
}
