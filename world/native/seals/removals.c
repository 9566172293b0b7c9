#define _GNU_SOURCE
#include "seals/removals.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/stat.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "deny/denials.h"
#include "deny/denied_names.h"
#include "deny/rules.h"
#include "deny/scan_roots.h"
#include "deny/worktrees.h"
#include "lib/channel.h"
#include "lib/commands.h"
#include "lib/fields.h"
#include "lib/frames.h"
#include "notify/notices.h"
#include "seals/replacements.h"

/* A path, and the stat of its folder. */
struct target {
  char path[PATH_MAX];
  struct stat folder;
};

enum act { NOTHING, REMOVES_FILE = 1, REMOVES_FOLDER = 2, MOVES = 3, REMOVES_PIN = 4 };

static bool moves(const struct seccomp_data *call) {
#ifdef SYS_rename
  if (call->nr == SYS_rename) return true;
#endif
#ifdef SYS_renameat
  if (call->nr == SYS_renameat) return true;
#endif
  return call->nr == SYS_renameat2 && (call->args[4] & ~(uint64_t)RENAME_NOREPLACE) == 0;
}

static bool removes_folder(const struct seccomp_data *call) {
#ifdef SYS_rmdir
  if (call->nr == SYS_rmdir) return true;
#endif
  return call->nr == SYS_unlinkat && (call->args[2] & AT_REMOVEDIR) != 0;
}

/* True when the rules only seal this path: a mask, or a denial of the policy itself, is never removed. */
static bool is_only_sealed(const char *path) {
  unsigned denied;
  (void)rule_states_at(path, DENY_IN_ROOTS, &denied);
  return (denied & ~DENY_OF_SEALS) == 0;
}

static bool find_folder(const char *path, struct target *target) {
  const char *leaf = strrchr(path, '/');
  if (leaf == NULL || leaf == path || strlen(path) >= sizeof target->path) return false;
  strcpy(target->path, path);
  target->path[leaf - path] = 0;
  int folder = denial_open(target->path, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  bool found = folder >= 0 && fstat(folder, &target->folder) == 0;
  if (folder >= 0) close(folder);
  strcpy(target->path, path);
  return found;
}

/* True for a folder bound onto itself to stay in place, false for a mount of the plan. */
static bool is_pin(const char *path) {
  struct statx status;
  int folder = denial_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (folder < 0) return false;
  bool pinned = statx(folder, "", AT_EMPTY_PATH, 0, &status) == 0 &&
                (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0 && !is_scan_root(path) &&
                faccessat(folder, ".", W_OK, 0) == 0;
  close(folder);
  return pinned;
}

/* True for a sealed path, or a path in a sealed folder. */
static bool is_sealed(const char *path, const struct target *target) {
  char folder[PATH_MAX];
  snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(target->path, '/') - target->path), target->path);
  return (denial_known(path) && denial_holds(path)) || (denial_known(folder) && denial_holds(folder) && !is_pin(folder));
}

static void ask(const struct command *command, uint64_t token, enum act act, int error, const struct target *from,
                const struct target *to) {
  static uint8_t payload[2 * (FIELD_HEADER_SIZE + PATH_MAX) + 7 * (FIELD_HEADER_SIZE + 8)];
  struct field_writer writer = {.data = payload, .capacity = sizeof payload};
  field_put_u64(&writer, TAG_TOKEN, token);
  field_put_u64(&writer, TAG_ACT, act);
  field_put_u64(&writer, TAG_ERRNO, (uint64_t)error);
  field_put_string(&writer, TAG_PATH, from->path);
  field_put_u64(&writer, TAG_DEVICE, from->folder.st_dev);
  field_put_u64(&writer, TAG_INODE, from->folder.st_ino);
  if (act == MOVES) {
    field_put_string(&writer, TAG_TARGET, to->path);
    field_put_u64(&writer, TAG_TARGET_DEVICE, to->folder.st_dev);
    field_put_u64(&writer, TAG_TARGET_INODE, to->folder.st_ino);
  }
  channel_send(FRAME_REMOVING, command->id, payload, writer.length);
}

static bool is_writable_folder(const char *path) {
  char folder[PATH_MAX];
  snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
  int fd = denial_open(folder, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  bool writable = fd >= 0 && faccessat(fd, ".", W_OK, 0) == 0;
  if (fd >= 0) close(fd);
  return writable;
}

static bool is_in_known_folder(const char *path) {
  char folder[PATH_MAX];
  snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
  return denial_known(folder);
}

/* True when the target's folder is writable, no rule denies or seals the target's name, and the folder is not
   a pre-existing git folder. */
static bool find_target(const char *path, struct target *to) {
  unsigned denied;
  if (!find_folder(path, to) || scan_root_of(path) == NULL || is_in_known_folder(path)) return false;
  (void)rule_states_at(path, DENY_IN_ROOTS, &denied);
  return (denied & ~DENY_REPOSITORY) == 0 && is_writable_folder(path);
}

/* Classifies the call. NOTHING: not for the broker. */
static enum act find_act(const struct seccomp_data *call, const struct removal *removal, struct target *from,
                         struct target *to) {
  const char *path = removal->path;
  if (scan_root_of(path) == NULL || is_scan_root(path) || !is_only_sealed(path) || !find_folder(path, from)) return NOTHING;
  if (removal->target != NULL) {
    bool may = moves(call) && is_pin(path) && find_target(removal->target, to) && denials_below(path, is_only_sealed);
    return may ? MOVES : NOTHING;
  }
  if (removes_folder(call)) return is_pin(path) ? REMOVES_PIN : is_sealed(path, from) ? REMOVES_FOLDER : NOTHING;
  return is_sealed(path, from) || worktree_needs(path) ? REMOVES_FILE : NOTHING;
}

bool removal_serve(int listener, const struct seccomp_notif *notice, const struct command *command,
                   const struct removal *removal) {
  static struct target from, to;
  if (!names_guarded() || !channel_has_room()) return false;
  enum act act = find_act(&notice->data, removal, &from, &to);
  if (act == NOTHING || !notice_waits(listener, notice->id) || !replacement_wait(listener, notice->id, command)) return false;
  ask(command, notice->id, act, removal->refused, &from, &to);
  return true;
}
