#define _GNU_SOURCE
#include "seals/replacements.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "deny/denials.h"
#include "deny/denied_names.h"
#include "lib/callers.h"
#include "lib/channel.h"
#include "lib/clock.h"
#include "lib/commands.h"
#include "lib/credentials.h"
#include "lib/failure.h"
#include "lib/fields.h"
#include "lib/file_calls.h"
#include "lib/frames.h"
#include "notify/notices.h"
#include "notify/writes/locks.h"
#include "notify/writes/lookups.h"
#include "notify/writes/touched.h"

/* Pending calls per world; further calls fail with the kernel's EBUSY. A program that follows git's protocol
   has a single call per file. */
#define WAITING_MAX 16
/* Linux 6.6, newer than the oldest headers for this build. The same number on every architecture. */
#define CALL_FCHMODAT2 452
/* Suffix of the new file when git, or another implementation of git, replaces a file by rename. The file also
   serves as the lock. */
static const char LOCK[] = ".lock";

struct waiting {
  struct waiting *next;
  uint32_t command;
  int listener;
  uint64_t token; /* id of the notification, repeated in REPLACED */
  int64_t deadline;
  int folder; /* -1: a call without a lock file */
  char lock[NAME_MAX + 1];
};

/* A resolved name of a caller. */
struct named {
  int folder; /* O_PATH */
  char path[PATH_MAX + NAME_MAX + 2]; /* real path */
  size_t parent; /* length of the folder's part of `path` */
  const char *leaf;
};

static struct waiting *all;
static unsigned count;

/* True for a rename without flags: a rename with flags is not a plain replacement, and fails in the
   kernel. */
static bool is_rename(const struct seccomp_data *call) {
#ifdef SYS_rename
  if (call->nr == SYS_rename) return true;
#endif
#ifdef SYS_renameat
  if (call->nr == SYS_renameat) return true;
#endif
  return call->nr == SYS_renameat2 && call->args[4] == 0;
}

/* Returns the index of the mode argument, 0: not a chmod. */
static int mode_argument(const struct seccomp_data *call) {
#ifdef SYS_chmod
  if (call->nr == SYS_chmod) return 1;
#endif
  if (call->nr == SYS_fchmodat) return 2;
  return call->nr == CALL_FCHMODAT2 && call->args[3] == 0 ? 2 : 0;
}

/* Resolves a name whose last component satisfies `ends`. Nearly all names fail this test, which costs a look
   at the text. */
static bool find(pid_t caller, const struct file_name *name, bool (*ends)(const char *leaf), struct named *named) {
  static char text[PATH_MAX], real[PATH_MAX + 1];
  struct view view = {.caller = caller, .base = -1, .folder = name->folder};
  if (!callers_text(caller, name->address, text)) return false;
  const char *leaf = strrchr(text, '/');
  if (!ends(leaf == NULL ? text : leaf + 1)) return false;
  /* The names of a caller with another root mean other files to the broker, so its call fails in the kernel. */
  if (callers_nested(caller)) return false;
  int fd = callers_part(&view, text, &leaf);
  if (fd < 0) return false;
  if (callers_is_dots(leaf) || strlen(leaf) > NAME_MAX) {
    close(fd);
    return false;
  }
  fd = callers_settle(&view, fd, real);
  if (fd < 0) return false;
  named->folder = fd;
  named->parent = strcmp(real, "/") == 0 ? 0 : strlen(real);
  snprintf(named->path, sizeof named->path, "%.*s/%s", (int)named->parent, real, leaf);
  named->leaf = named->path + named->parent + 1;
  return true;
}

/* True when the broker is asked about this name and the name is sealed now. */
static bool is_asked_about(const struct named *named) {
  return denial_asks(named->path) && denial_holds(named->path);
}

/* True for a missing name that only the broker may create. */
static bool is_missing(const struct named *named) {
  struct stat status;
  return fstatat(named->folder, named->leaf, &status, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT &&
         names_ask_about_missing(named->path);
}

static bool ends_as_lock(const char *leaf) {
  size_t length = strlen(leaf), end = sizeof LOCK - 1;
  return length > end && strcmp(leaf + length - end, LOCK) == 0;
}

static bool is_lock_of(const struct named *lock, const struct named *target) {
  size_t length = strlen(target->path);
  return strncmp(lock->path, target->path, length) == 0 && strcmp(lock->path + length, LOCK) == 0;
}

/* Reads the new content once: the broker judges and writes this copy. -1: not a file of the caller's user,
   too long, or changed meanwhile. */
static ssize_t read_content(const struct named *lock, uint8_t *content) {
  struct stat before, after;
  int file = openat(lock->folder, lock->leaf, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (file < 0) return -1;
  size_t length = 0;
  ssize_t got = -1;
  bool fits = fstat(file, &before) == 0 && S_ISREG(before.st_mode) && before.st_nlink == 1 &&
              before.st_uid == geteuid() && before.st_size <= FRAME_MAX_REPLACEMENT;
  while (fits && length <= FRAME_MAX_REPLACEMENT &&
         (got = read(file, content + length, FRAME_MAX_REPLACEMENT + 1 - length)) > 0) {
    length += (size_t)got;
  }
  fits = fits && got == 0 && fstat(file, &after) == 0 && (off_t)length == after.st_size && after.st_nlink == 1 &&
         memcmp(&before.st_mtim, &after.st_mtim, sizeof before.st_mtim) == 0;
  close(file);
  return fits ? (ssize_t)length : -1;
}

static bool ask(const struct command *command, uint64_t token, const struct named *target, const uint8_t *content,
                size_t length) {
  struct stat folder;
  size_t capacity = length + sizeof target->path + 5 * (FIELD_HEADER_SIZE + 8);
  uint8_t *payload = fstat(target->folder, &folder) == 0 ? malloc(capacity) : NULL;
  if (payload == NULL) return false;
  struct field_writer writer = {.data = payload, .capacity = capacity};
  field_put_u64(&writer, TAG_TOKEN, token);
  field_put_string(&writer, TAG_PATH, target->path);
  field_put_u64(&writer, TAG_DEVICE, folder.st_dev);
  field_put_u64(&writer, TAG_INODE, folder.st_ino);
  field_put(&writer, TAG_CONTENT, content, length);
  channel_send(FRAME_REPLACING, command->id, payload, writer.length);
  free(payload);
  return true;
}

/* Queues a call and takes over the lock's folder. */
static bool hold(int listener, uint64_t token, const struct command *command, struct named *lock) {
  struct waiting *waiting = count < WAITING_MAX ? calloc(1, sizeof *waiting) : NULL;
  if (waiting == NULL) return false;
  *waiting = (struct waiting){.next = all,
                              .command = command->id,
                              .listener = listener,
                              .token = token,
                              .deadline = now_ms() + FRAME_REPLACE_PATIENCE_MS,
                              .folder = lock->folder};
  snprintf(waiting->lock, sizeof waiting->lock, "%s", lock->leaf);
  lock->folder = -1;
  all = waiting;
  count++;
  return true;
}

bool replacement_wait(int listener, uint64_t token, const struct command *command) {
  struct named none = {.folder = -1, .leaf = ""};
  return hold(listener, token, command, &none);
}

static bool replace(int listener, const struct seccomp_notif *notice, const struct command *command, struct named *lock,
                    const struct named *target) {
  if (!is_lock_of(lock, target) || !lock_is_own(lock->folder, lock->leaf) || !channel_has_room() || count == WAITING_MAX) return false;
  uint8_t *content = malloc(FRAME_MAX_REPLACEMENT + 1);
  if (content == NULL) return false;
  ssize_t length = read_content(lock, content);
  /* The caller still waits, so the path and content read were its own. */
  bool asked = length >= 0 && notice_waits(listener, notice->id) &&
               ask(command, notice->id, target, content, (size_t)length) && hold(listener, notice->id, command, lock);
  free(content);
  return asked;
}

/* Records both names for the diff: the caller's own rename is never carried out. */
static void note(struct command *command, pid_t caller, struct file_name names[FILE_NAMES_MAX]) {
  static struct lookup place;
  if (!lookups_counted()) return;
  for (int i = 0; i < FILE_NAMES_MAX; i++) {
    enum found found = lookup_find(caller, &names[i], &place);
    if (found == FOUND) touched_note(command, names[i].how, &place);
    if (found == UNREADABLE) touched_unread(command);
  }
}

static bool serve_rename(int listener, const struct seccomp_notif *notice, struct command *command,
                         struct file_name names[FILE_NAMES_MAX]) {
  static struct named target, lock;
  pid_t caller = (pid_t)notice->pid;
  if (!find(caller, &names[1], denials_ask_of, &target)) return false;
  bool served = false;
  if ((is_asked_about(&target) || is_missing(&target)) && find(caller, &names[0], ends_as_lock, &lock)) {
    note(command, caller, names);
    served = replace(listener, notice, command, &lock, &target);
    if (lock.folder >= 0) close(lock.folder);
  }
  close(target.folder);
  return served;
}

/* Changes the owner's execute bit, past the seal, and no other bit. `git init` clears and restores this bit
   of its settings to test whether modes are kept; after a failure git writes that modes do not count. */
static bool serve_mode(int listener, const struct seccomp_notif *notice, const struct file_name *name, mode_t mode) {
  static struct named named;
  struct stat status, seen;
  char link[32];
  if (!find((pid_t)notice->pid, name, denials_ask_of, &named)) return false;
  int under = is_asked_about(&named) ? denial_under(named.path) : -1;
  bool same = under >= 0 && fstat(under, &status) == 0 && lstat(named.path, &seen) == 0 && S_ISREG(status.st_mode) &&
              status.st_ino == seen.st_ino && status.st_dev == seen.st_dev;
  close(named.folder);
  if (!same || ((mode ^ status.st_mode) & 07777 & ~(mode_t)S_IXUSR) != 0) return false;
  if (!notice_waits(listener, notice->id)) return true;
  snprintf(link, sizeof link, "self/fd/%d", under);
  int failed = fchmodat(callers_proc, link, mode & 07777, 0) < 0 ? errno : 0;
  notice_return(listener, notice->id, 0, failed);
  return true;
}

bool replacement_serve(int listener, const struct seccomp_notif *notice, struct command *command) {
  struct file_name names[FILE_NAMES_MAX];
  if (command == NULL) return false;
  int mode = mode_argument(&notice->data);
  if (mode == 0 && !is_rename(&notice->data)) return false;
  int wanted = mode == 0 ? 2 : 1;
  if (file_call_names(&notice->data, names) != wanted) return false;
  return mode == 0 ? serve_rename(listener, notice, command, names)
                   : serve_mode(listener, notice, &names[0], (mode_t)notice->data.args[mode]);
}

/* Returns the id of the mount that a descriptor refers to; 0: unknown. */
static uint64_t mount_of(int fd) {
  struct statx status;
  if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &status) < 0 || (status.stx_mask & STATX_MNT_ID) == 0) return 0;
  return status.stx_mnt_id;
}

/* True when the mount of the target's folder also shows `under`: commands reach the sealed name through that
   mount, and a seal on another mount would not stop them. */
static bool is_shown_by(int under, const char *target) {
  char folder[PATH_MAX];
  const char *end = strrchr(target, '/');
  if (end == NULL || end == target || end - target >= PATH_MAX) return false;
  snprintf(folder, sizeof folder, "%.*s", (int)(end - target), target);
  int fd = denial_open(folder, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (fd < 0) return false;
  bool same = mount_of(fd) != 0 && mount_of(fd) == mount_of(under);
  close(fd);
  return same;
}

/* Seals `staged`, the future `target`. Returns 0 or an errno. */
static int seal(const char *staged, const char *target, uint64_t inode) {
  char folder[PATH_MAX];
  struct stat status;
  const char *leaf = strrchr(staged, '/');
  if (leaf == NULL || leaf == staged || leaf - staged >= PATH_MAX) return EINVAL;
  snprintf(folder, sizeof folder, "%.*s", (int)(leaf - staged), staged);
  int under = denial_under(folder);
  if (under < 0 || !denial_holds(folder) || !is_shown_by(under, target)) return EXDEV;
  int place = openat(under, leaf + 1, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (place < 0) return errno;
  int failed = fstat(place, &status) < 0 ? errno : 0;
  if (failed == 0 && (!S_ISREG(status.st_mode) || status.st_ino != inode || status.st_nlink != 1)) failed = EINVAL;
  if (failed == 0 && denial_seal(place) < 0) failed = errno;
  if (failed != 0) close(place);
  else if (denial_known(target)) denial_keep_under(target, place);
  else denial_expect(staged, place);
  return failed;
}

void replacement_seal(const struct frame *frame) {
  struct field_reader reader = {frame->payload, frame->payload + frame->length};
  struct field field;
  uint64_t inode = 0;
  char *staged = NULL, *target = NULL;
  int got;
  while ((got = field_next(&reader, &field)) > 0) {
    bool text = field.tag == TAG_PATH || field.tag == TAG_TARGET;
    if (text ? !field_is_string(&field, 1) : field.tag != TAG_INODE || !field_u64(&field, &inode)) {
      fail_protocol("SEAL: bad field");
    }
    if (field.tag == TAG_PATH) staged = field_terminate(&field);
    if (field.tag == TAG_TARGET) target = field_terminate(&field);
  }
  if (got < 0 || target == NULL) fail_protocol("SEAL: malformed");
  /* A world idle for a while watches nothing, and may not know the repository yet. */
  if (staged != NULL && !denial_known(target) && names_guarded()) names_look();
  /* An unknown name needs no seal: commands may write the file anyway, or do not see the file. */
  int failed = ENOENT;
  if (denial_known(target) && staged == NULL) {
    failed = denial_holds(target) ? 0 : ENOENT;
  } else if (denial_known(target) || (staged != NULL && names_ask_about_missing(target))) {
    credentials_raise();
    failed = seal(staged, target, inode);
    credentials_lower();
  }
  uint8_t payload[FIELD_HEADER_SIZE + 8];
  struct field_writer writer = {.data = payload, .capacity = sizeof payload};
  field_put_u64(&writer, TAG_ERRNO, (uint64_t)failed);
  channel_send(FRAME_SEALED, frame->id, payload, writer.length);
}

static void release(struct waiting **link) {
  struct waiting *waiting = *link;
  *link = waiting->next;
  count--;
  if (waiting->folder >= 0) close(waiting->folder);
  free(waiting);
}

/* Answers a call. A caller interrupted by a signal repeats the same call: the repetition finds its file, and
   is answered then. */
static void settle(struct waiting **link, int failed) {
  struct waiting *waiting = *link;
  if (notice_waits(waiting->listener, waiting->token)) {
    if (failed == 0 && waiting->folder >= 0) (void)lock_remove(waiting->folder, waiting->lock);
    notice_return(waiting->listener, waiting->token, 0, failed);
  }
  release(link);
}

void replacement_answer(const struct frame *frame) {
  struct field_reader reader = {frame->payload, frame->payload + frame->length};
  struct field field;
  uint64_t token = 0, failed = 0, *value;
  int got;
  while ((got = field_next(&reader, &field)) > 0) {
    value = field.tag == TAG_TOKEN ? &token : field.tag == TAG_ERRNO ? &failed : NULL;
    if (value == NULL || !field_u64(&field, value)) fail_protocol("REPLACED: bad field");
  }
  if (got < 0 || token == 0 || failed > 4095) fail_protocol("REPLACED: malformed");
  for (struct waiting **link = &all; *link != NULL; link = &(*link)->next) {
    if ((*link)->command != frame->id || (*link)->token != token) continue;
    settle(link, (int)failed);
    return;
  }
}

int replacements_check_deadlines(void) {
  int64_t next = -1, now = all == NULL ? 0 : now_ms();
  struct waiting **link = &all;
  while (*link != NULL) {
    int64_t left = (*link)->deadline - now;
    if (left <= 0) {
      settle(link, EBUSY);
      continue;
    }
    if (next < 0 || left < next) next = left;
    link = &(*link)->next;
  }
  return next < 0 ? -1 : (int)next + 1;
}

void replacements_forget(int listener) {
  struct waiting **link = &all;
  while (*link != NULL) {
    if ((*link)->listener == listener) release(link);
    else link = &(*link)->next;
  }
}
