#define _GNU_SOURCE
#include "notify/starts/starts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/callers.h"
#include "lib/channel.h"
#include "lib/commands.h"
#include "lib/failure.h"
#include "lib/fields.h"
#include "lib/frames.h"
#include "notify/notices.h"
#include "notify/starts/gates.h"
#include "notify/starts/lineage.h"
#include "notify/starts/own_program.h"
#include "notify/starts/pending.h"
#include "notify/starts/target.h"
#include "seccomp/filter.h"

/* Bound for the caller's own command line, bytes; a longer command line is left out of the question. */
#define STARTER_WORDS 4096

static struct target target;

static const char *base_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash == NULL ? path : slash + 1;
}

static bool is_start(const struct seccomp_data *call) {
  return call->nr == SYS_execve || call->nr == SYS_execveat;
}

/* True when any name of this program is in the gate: path, argv[0], or a file with the same bytes. */
static bool concerns(struct gate *gate, const struct image *image, const struct words *words) {
  size_t at = 0;
  if (gate_asks_all(gate) || image->path[0] == 0 || image->unknown != NULL) return true;
  if (gate_names(gate, image->path) || gate_names(gate, image->called)) return true;
  return (words->count > 0 && gate_names(gate, words->text)) || gate_same(gate, image, &at) != NULL;
}

static bool is_asked(struct gate *gate) {
  for (int i = 0; i < target.count; i++) {
    if (concerns(gate, &target.images[i], &target.words[i])) return true;
  }
  return target.unknown != NULL;
}

/* True when a command's own program is disguised: a copy of or a link to a program in the gate, or a script
   that leads to such a program. A file that commands cannot write needs no check: the broker has judged its
   name. */
static bool is_disguised(struct gate *gate) {
  const struct image *image = &target.images[0];
  size_t at = 0;
  for (int i = 1; i < target.count; i++) {
    if (concerns(gate, &target.images[i], &target.words[i])) return true;
  }
  return target.unknown != NULL || (image->writable && gate_same(gate, image, &at) != NULL);
}

static void put_file(struct field_writer *writer, struct gate *gate, const struct image *image,
                     const struct words *words) {
  size_t at = 0;
  const char *name;
  field_put_string(writer, TAG_CALLED, image->called);
  if (image->path[0] != 0) field_put_string(writer, TAG_REAL, image->path);
  while (image->path[0] != 0 && (name = gate_same(gate, image, &at)) != NULL) field_put_string(writer, TAG_SAME, name);
  field_put(writer, TAG_WORDS, words->text, words->length);
}

static const char *path_of_target(void) {
  const struct image *image = &target.images[0];
  return image->path[0] != 0 ? image->path : image->called;
}

/* Adds the command line of a program that starts itself again with other arguments: git runs much of its work
   so. */
static void put_starter(struct field_writer *writer, pid_t pid) {
  static char words[STARTER_WORDS];
  static char path[PATH_MAX + 1];
  char name[32];
  const struct image *image = &target.images[0];
  snprintf(name, sizeof name, "%d/exe", pid);
  ssize_t length = target.count == 1 ? readlinkat(callers_proc, name, path, PATH_MAX) : -1;
  if (length <= 0 || length == PATH_MAX || path[0] != '/') return;
  path[length] = 0;
  if (strcmp(base_of(path), base_of(image->path)) != 0) return;
  snprintf(name, sizeof name, "%d/cmdline", pid);
  int fd = openat(callers_proc, name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  length = read(fd, words, sizeof words);
  close(fd);
  /* Truncated, or overwritten by the program: the original command line is unknown. */
  if (length <= 0 || (size_t)length == sizeof words || words[length - 1] != 0) return;
  field_put_string(writer, TAG_STARTER, path);
  field_put(writer, TAG_STARTER_WORDS, words, (size_t)length);
}

/* Adds the caller's working folder, unless its path leads elsewhere: a removed folder, or one of another mount
   namespace. */
static void put_folder(struct field_writer *writer, pid_t task) {
  char name[32], path[PATH_MAX + 1];
  struct stat own, named;
  snprintf(name, sizeof name, "%d/cwd", task);
  ssize_t length = readlinkat(callers_proc, name, path, PATH_MAX);
  if (length <= 0 || length == PATH_MAX || path[0] != '/') return;
  path[length] = 0;
  if (fstatat(callers_proc, name, &own, 0) != 0 || lstat(path, &named) != 0) return;
  if (own.st_dev == named.st_dev && own.st_ino == named.st_ino) field_put_string(writer, TAG_WORKING_FOLDER, path);
}

/* Asks the broker about the start. Token 0: the caller does not wait for an answer. */
static void ask(struct command *command, const struct caller *caller, uint64_t token) {
  static uint8_t payload[TARGET_FILES * (WORDS_LONG + 4 * PATH_MAX) + 64 * 1024];
  struct field_writer writer = {.data = payload, .capacity = sizeof payload};
  bool cut = false;
  if (token != 0) field_put_u64(&writer, TAG_TOKEN, token);
  field_put_u64(&writer, TAG_CALLER, (uint64_t)caller->pid);
  put_folder(&writer, caller->task);
  put_starter(&writer, caller->pid);
  for (int i = 0; i < target.count; i++) {
    put_file(&writer, command->gate, &target.images[i], &target.words[i]);
    cut |= target.words[i].cut;
  }
  if (writer.full) {
    /* Only a deliberate attempt makes so many names for a file: the last files, which run, would not fit. */
    writer = (struct field_writer){.data = payload, .capacity = sizeof payload};
    if (token != 0) field_put_u64(&writer, TAG_TOKEN, token);
    field_put_u64(&writer, TAG_CALLER, (uint64_t)caller->pid);
    field_put_string(&writer, TAG_CALLED, target.images[0].called);
    field_put_string(&writer, TAG_REAL, path_of_target());
    target.unknown = "its names are too long to be reported";
    cut = true;
  }
  if (cut) field_put_u64(&writer, TAG_CUT, 1);
  if (target.unknown != NULL) field_put_string(&writer, TAG_UNREADABLE, target.unknown);
  channel_send(FRAME_STARTING, command->id, payload, writer.length);
}

static void refuse(int listener, uint64_t id, struct command *command, const struct caller *caller) {
  if (notice_answer(listener, id, EACCES)) lineage_refused(command, caller, path_of_target(), words_told(&target.words[0]));
}

/* FNV-1a over process, file and arguments. Only for recognition: a caller that forges a collision is refused
   both starts. Never 0. */
static uint64_t mark_of(const struct caller *caller, const struct image *image, const struct words *words) {
  uint64_t hash = 0xcbf29ce484222325;
  const uint64_t numbers[] = {(uint64_t)caller->pid, image->stat.st_dev, image->stat.st_ino};
  const uint8_t *bytes = (const uint8_t *)numbers;
  for (size_t i = 0; i < sizeof numbers; i++) hash = (hash ^ bytes[i]) * 0x100000001b3;
  for (size_t i = 0; i < words->length; i++) hash = (hash ^ (uint8_t)words->text[i]) * 0x100000001b3;
  return hash | 1;
}

/* Asks the broker and keeps the caller waiting. */
static void hold(int listener, uint64_t id, struct command *command, const struct caller *caller, bool own) {
  const struct pending start = {.command = command->id,
                                .listener = listener,
                                .token = id,
                                .caller = *caller,
                                .mark = mark_of(caller, &target.images[0], &target.words[0]),
                                .own = own};
  /* A broker that leaves the channel full would not answer in time: refuse now, so that other callers need
     not wait. */
  if (pending_was_refused(command, start.mark) || !channel_has_room()) return refuse(listener, id, command, caller);
  if (!pending_add(&start, path_of_target(), words_told(&target.words[0]))) return refuse(listener, id, command, caller);
  ask(command, caller, id);
}

static void judge(int listener, const struct seccomp_notif *notice, struct command *command,
                  const struct caller *caller) {
  struct gate *gate = command->gate;
  enum image_found found = target_read(&target, notice);
  bool refuses = gate != NULL && gate_refuses(gate);
  if (found == IMAGE_MISSING) {
    /* Answer with the expected errno here: no file can appear at the path between this look-up and the
       kernel's. */
    notice_answer(listener, notice->id, refuses ? target.error : 0);
    return;
  }
  if (gate != NULL && found == IMAGE_FOUND) target_follow(&target, gate, caller->pid);
  if (gate != NULL && is_asked(gate)) {
    if (refuses) return hold(listener, notice->id, command, caller, false);
    if (channel_has_room()) ask(command, caller, 0);
  }
  if (!notice_waits(listener, notice->id)) return;
  lineage_started(command, caller, path_of_target(), words_told(&target.words[0]));
  notice_answer(listener, notice->id, 0);
}

/* Judges every file that the runner may find along PATH, at its first execve, and again while the broker is
   asked about a file: a signal makes the runner call twice. */
static void judge_own(int listener, uint64_t id, struct command *command, const struct caller *caller) {
  enum image_found found;
  struct gate *gate = command->gate;
  if (command->refused != 0) {
    notice_answer(listener, id, EACCES);
    return;
  }
  if (command->own != NULL) own_program_begin(command->own);
  while (command->own != NULL && own_program_next(command->own, &target, caller->pid, &found)) {
    if (found == IMAGE_MISSING) continue;
    if (found == IMAGE_FOUND) target_follow(&target, gate, caller->pid);
    if (!is_disguised(gate)) continue;
    if (gate_refuses(gate)) return hold(listener, id, command, caller, true);
    ask(command, caller, 0);
  }
  own_program_release(command->own);
  command->own = NULL;
  notice_answer(listener, id, 0);
}

static void serve(int listener, const struct seccomp_notif *notice, struct command *command) {
  struct caller caller;
  pid_t task = (pid_t)notice->pid;
  if (command == NULL) {
    notice_answer(listener, notice->id, EPERM);
    return;
  }
  if (command->gate == NULL && command->lineage == NULL) {
    notice_answer(listener, notice->id, 0);
    return;
  }
  /* The caller is gone, or procfs cannot be read. A start that cannot be reported is refused. */
  if (!callers_identify(task, &caller)) {
    notice_answer(listener, notice->id, EACCES);
    return;
  }
  if (filter_is_own_start(&notice->data)) {
    judge_own(listener, notice->id, command, &caller);
    return;
  }
  judge(listener, notice, command, &caller);
}

bool start_serve(int listener, const struct seccomp_notif *notice, struct command *command) {
  if (!is_start(&notice->data)) return false;
  serve(listener, notice, command);
  return true;
}
