#define _GNU_SOURCE
#include "notify/writes/lookups.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "deny/denials.h"
#include "deny/denied_names.h"
#include "deny/worktrees.h"
#include "lib/callers.h"
#include "notify/writes/opened.h"

static char project[PATH_MAX];
static size_t project_length;

/* A path look-up in progress: `text` is the unresolved rest, relative to `base`. */
struct search {
  struct view view;
  char text[PATH_MAX];
  const char *leaf;
  char real[PATH_MAX + 1]; /* real path of the leaf's folder */
  bool looped; /* PID 1 cannot follow the path's links as the caller's kernel does */
};

bool lookups_counted(void) {
  return project_length > 0;
}

bool lookup_holds(const char *path, ino_t inode) {
  static char whole[3 * PATH_MAX];
  struct stat stat;
  if (path[0] == '/') snprintf(whole, sizeof whole, "%s", path);
  else snprintf(whole, sizeof whole, "%s/%s", project, path);
  return lstat(whole, &stat) == 0 && stat.st_ino == inode;
}

bool lookup_whole(const struct lookup *place, char whole[PATH_MAX]) {
  int length = place->path[0] == '/' ? snprintf(whole, PATH_MAX, "%s", place->path)
                                     : snprintf(whole, PATH_MAX, "%s/%s", project, place->path);
  return length < PATH_MAX;
}

/* Reads the path behind a caller's descriptor; ELSEWHERE for a descriptor without a path. */
static enum found read_descriptor(struct search *search, int fd) {
  char link[64];
  if (fd == AT_FDCWD) snprintf(link, sizeof link, "%d/cwd", search->view.caller);
  else snprintf(link, sizeof link, "%d/fd/%d", search->view.caller, fd);
  ssize_t length = readlinkat(callers_proc, link, search->text, sizeof search->text - 1);
  if (length < 0) return errno == ENOENT ? ELSEWHERE : UNREADABLE;
  search->text[length] = 0;
  return search->text[0] == '/' ? FOUND : ELSEWHERE;
}

/* Classifies a failed look-up: either the call must fail too, or PID 1 lacks a resource. EACCES for PID 1 is
   EACCES for the caller, unless the caller has a user namespace of its own. */
static enum found found_nothing(struct search *search) {
  search->looped = errno == ELOOP;
  if (search->view.nested && errno == EACCES) return UNREADABLE;
  bool ours = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ELOOP || errno == ENOSYS;
  return ours ? UNREADABLE : ELSEWHERE;
}

/* A project missing under its real path holds no names: nothing is reported, and EXIT says so. */
void lookups_open(int procfs, const char *path) {
  char real[PATH_MAX + 1];
  callers_proc = procfs;
  if (path == NULL) return;
  int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0 && callers_real(fd, real) && strcmp(real, path) == 0) {
    project_length = strlen(path);
    memcpy(project, path, project_length + 1);
  }
  if (fd >= 0) close(fd);
}

/* Resolves a name that ends in dots: always a folder, named by its real path. */
static int name_folder(struct search *search) {
  int fd = callers_open(&search->view, search->text);
  if (fd < 0) return -1;
  bool read = callers_real(fd, search->real);
  close(fd);
  if (!read) return -1;
  size_t length = strlen(search->real);
  if (length >= sizeof search->text) return -1;
  memcpy(search->text, search->real, length + 1);
  return 0;
}

static bool is_below(const char *real) {
  if (strncmp(real, project, project_length) != 0) return false;
  return real[project_length] == 0 || real[project_length] == '/';
}

/* Writes the leaf's absolute path. */
static int write_whole(const struct search *search, char whole[2 * PATH_MAX]) {
  const char *slash = search->real[1] == 0 ? "" : "/";
  return snprintf(whole, 2 * PATH_MAX, "%s%s%s", search->real, slash, search->leaf);
}

/* True for a path in a folder opened outside the project; leaves the absolute path in `place`. */
static bool is_opened(const struct search *search, struct lookup *place) {
  if (!opened_any()) return false;
  place->length = (size_t)write_whole(search, place->path);
  return opened_holds(place->path);
}

static void put_path(const struct search *search, struct lookup *place) {
  const char *below = search->real + project_length;
  int length = below[0] == 0 ? snprintf(place->path, sizeof place->path, "%s", search->leaf)
                             : snprintf(place->path, sizeof place->path, "%s/%s", below + 1, search->leaf);
  place->length = (size_t)length;
}

static bool is_read_only(int fd, const char *leaf) {
  struct statfs status;
  int file = openat(fd, leaf, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) return false;
  bool read_only = fstatfs(file, &status) == 0 && (status.f_flags & ST_RDONLY) != 0;
  close(file);
  return read_only;
}

/* access(2) checks permissions first, as the call will: EROFS means that the caller could write there on the
   host. Only a read-only file system, not a read-only mount, comes before permissions. */
static bool is_closed(int fd, const char *leaf) {
  return faccessat(fd, leaf, W_OK, 0) < 0 && errno == EROFS;
}

/* True for a mount point: rename and removal fail there, opening does not. */
static bool is_pinned(int fd, const char *leaf) {
  struct statx status;
  int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
  return statx(fd, leaf, flags, 0, &status) == 0 && (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

/* True for a folder with entries: rmdir fails there on the host too, and git tries rmdir on each folder above
   a removed file. */
static bool is_full(int fd, const char *leaf) {
  int folder = openat(fd, leaf, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  DIR *names = folder < 0 ? NULL : fdopendir(folder);
  if (names == NULL) {
    if (folder >= 0) close(folder);
    return false;
  }
  const struct dirent *each;
  do each = readdir(names);
  while (each != NULL && callers_is_dots(each->d_name));
  closedir(names);
  return each != NULL;
}

static int refused_as(int fd, const char *leaf, const struct file_name *name, bool below, const struct lookup *place) {
  bool writes = (name->how & HOW_WRITE) != 0 && place->exists && S_ISREG(place->stat.st_mode);
  if (writes && is_closed(fd, leaf)) return EROFS;
  /* A created name must be missing, and a removed name must exist: otherwise the call fails on the host
     too. */
  bool named = (name->how & HOW_NAME) != 0 && ((name->how & HOW_MOVED) != 0 || name->makes != place->exists);
  if (named) {
    if (is_closed(fd, ".")) return EROFS;
    if (!place->exists || !is_pinned(fd, leaf)) return 0;
    return name->removes && S_ISDIR(place->stat.st_mode) && is_full(fd, leaf) ? 0 : EBUSY;
  }
  /* HOW_MODE alone is a chmod (the first name of link(2) has the same bit). Not reported inside the project:
     chmod is frequent there, and sealed files are reported on writes. */
  bool sets_mode = name->how == HOW_MODE && !name->makes && !below && place->exists;
  bool may = geteuid() == 0 || place->stat.st_uid == geteuid();
  return sets_mode && may && is_read_only(fd, leaf) ? EROFS : 0;
}

static bool makes(const struct file_name *name, const struct lookup *place) {
  return (name->how & HOW_NAME) != 0 && (name->makes || (name->how & HOW_MOVED) != 0) && !place->exists;
}

/* The kernel's answer where the name is a sealed file, 0: none. */
static int sealed_as(const struct file_name *name, const struct lookup *place) {
  if (!place->exists || S_ISDIR(place->stat.st_mode) || name->exclusive) return 0;
  if ((name->how & HOW_WRITE) != 0) return EROFS;
  if (name->how == HOW_MODE) return name->makes ? EXDEV : 0;
  return (name->how & HOW_MOVED) != 0 || !name->makes ? EBUSY : 0;
}

/* Git, or another implementation of git, renames `NAME.lock` onto its settings. */
static bool ends_as_lock(const char *leaf) {
  size_t length = strlen(leaf), end = strlen(".lock");
  return length > end && strcmp(leaf + length - end, ".lock") == 0;
}

/* True for the lock file of settings that commands may not write by themselves, whether either exists or not. */
static bool is_lock(const char *path) {
  char settings[PATH_MAX];
  size_t length = strlen(path) - strlen(".lock");
  if (length >= sizeof settings) return false;
  snprintf(settings, sizeof settings, "%.*s", (int)length, path);
  return denials_ask_of(strrchr(settings, '/') + 1) && (names_hold(settings) || names_ask_about_missing(settings));
}

/* The last part of the files that `worktree_needs` knows: a cheap filter. */
static bool may_be_kept(const struct file_name *name, const struct search *search, const struct lookup *place) {
  static const char *const leaves[] = {"HEAD", "gitdir", "index"};
  if (!name->removes || !place->exists || S_ISDIR(place->stat.st_mode)) return false;
  for (size_t i = 0; i < sizeof leaves / sizeof *leaves; i++) {
    if (strcmp(search->leaf, leaves[i]) == 0) return true;
  }
  return false;
}

static void note_refusal(const struct search *search, int fd, const struct file_name *name, bool below, struct lookup *place) {
  place->refused = refused_as(fd, search->leaf, name, below, place);
  int sealed = sealed_as(name, place);
  bool made = place->refused == 0 && makes(name, place);
  bool may_lock = ends_as_lock(search->leaf);
  bool may_keep = place->refused == 0 && may_be_kept(name, search, place);
  if (place->refused == 0 && sealed == 0 && !made && !may_lock && !may_keep) return;
  write_whole(search, place->refused_path);
  place->lock = may_lock && is_lock(place->refused_path);
  if (made) place->held = names_refuse(place->refused_path);
  else place->held = sealed != 0 && names_hold(place->refused_path);
  if (place->held) place->refused = made ? EPERM : sealed;
  else if (may_keep && worktree_needs(place->refused_path)) {
    place->held = true;
    place->refused = EBUSY;
  }
}

/* True when the name leads to the same file for PID 1: a caller in a mount namespace of its own can show the project's
   files under any name. */
static bool is_as_here(const struct search *search, int fd, const struct lookup *place) {
  struct stat here, there;
  int own = open(search->real, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (own < 0) return false;
  bool same = fstat(own, &here) == 0 && fstat(fd, &there) == 0 && here.st_dev == there.st_dev && here.st_ino == there.st_ino;
  bool exists = fstatat(own, search->leaf, &here, AT_SYMLINK_NOFOLLOW) == 0;
  close(own);
  if (!same || exists != place->exists) return false;
  return !exists || (here.st_dev == place->stat.st_dev && here.st_ino == place->stat.st_ino);
}

/* Resolves one step: the leaf in the folder `fd`. Returns 1 for a link to follow, with its target in
   `text`. */
static int look(struct search *search, int fd, const struct file_name *name, bool follow, struct lookup *place,
                enum found *found) {
  bool below = is_below(search->real);
  bool fits = strlen(search->leaf) <= NAME_MAX;
  *found = ELSEWHERE;
  if (!fits) return 0;
  if (below || is_opened(search, place)) *found = FOUND;
  place->exists = fstatat(fd, search->leaf, &place->stat, AT_SYMLINK_NOFOLLOW) == 0;
  if (!place->exists && errno != ENOENT && errno != ENOTDIR) {
    *found = found_nothing(search);
    return 0;
  }
  if (follow && place->exists && S_ISLNK(place->stat.st_mode)) {
    char target[PATH_MAX];
    ssize_t length = readlinkat(fd, search->leaf, target, sizeof target - 1);
    *found = ELSEWHERE;
    if (length <= 0) return 0;
    memcpy(search->text, target, (size_t)length);
    search->text[length] = 0;
    return 1;
  }
  if (search->view.nested && !is_as_here(search, fd, place)) {
    *found = UNREADABLE;
    return 0;
  }
  note_refusal(search, fd, name, below, place);
  if (below) put_path(search, place);
  return 0;
}

static enum found walk(struct search *search, const struct file_name *name, bool follow, struct lookup *place) {
  enum found found = ELSEWHERE;
  for (int links = 0; links < CALLERS_LINKS_MAX; links++) {
    const char *last = strrchr(search->text, '/');
    errno = 0;
    if (callers_is_dots(last == NULL ? search->text : last + 1) && name_folder(search) < 0) return found_nothing(search);
    int fd = callers_part(&search->view, search->text, &search->leaf);
    if (fd < 0) return found_nothing(search);
    fd = callers_settle(&search->view, fd, search->real);
    if (fd < 0) {
      /* No path of a seal is so long. */
      search->looped = errno != ENAMETOOLONG;
      return UNREADABLE;
    }
    int more = look(search, fd, name, follow, place, &found);
    if (search->view.base >= 0) close(search->view.base);
    search->view.base = fd;
    if (!more) return found;
  }
  return ELSEWHERE;
}

enum found lookup_find(pid_t caller, struct file_name *name, struct lookup *place) {
  static struct search search;
  search.view.caller = caller;
  search.view.nested = callers_nested(caller);
  search.view.base = -1;
  search.view.folder = name->folder;
  search.looped = false;
  place->refused = 0;
  place->held = place->lock = place->unknown = false;
  if (name->open_how != 0) {
    struct open_how how;
    if (!callers_memory(caller, name->open_how, &how, sizeof how)) return UNREADABLE;
    if (!file_call_opens(name, how.flags)) return ELSEWHERE;
    /* RESOLVE_IN_ROOT resolves names against the caller's folder as root, which this look-up does not
       model. */
    if ((how.resolve & RESOLVE_IN_ROOT) != 0) {
      place->unknown = !search.view.nested;
      return UNREADABLE;
    }
  }
  /* Without a path, or with an empty path, the call changes the descriptor's file itself. */
  search.text[0] = 0;
  if (name->address != 0 && !callers_text(caller, name->address, search.text)) return UNREADABLE;
  bool descriptor = name->by_descriptor && search.text[0] == 0;
  if (descriptor) {
    enum found found = read_descriptor(&search, name->folder);
    if (found != FOUND) return found;
    /* The path that PID 1 reads of the descriptor begins at PID 1's root. */
    search.view.nested = false;
  }
  enum found found = walk(&search, name, name->follow && !descriptor, place);
  if (search.view.base >= 0) close(search.view.base);
  place->unknown = search.looped && !search.view.nested;
  return found;
}
