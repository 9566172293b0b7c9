#define _GNU_SOURCE
#include "notify/starts/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "lib/callers.h"
#include "notify/starts/gates.h"

/* Memory missing for PID 1 is missing for the kernel too: the call fails. Memory closed to PID 1 may hold
   anything. */
static enum image_found unread(struct target *target, const char *why) {
  target->error = errno;
  target->unknown = why;
  return errno == EFAULT || errno == ENAMETOOLONG ? IMAGE_MISSING : IMAGE_UNKNOWN;
}

enum image_found target_read(struct target *target, const struct seccomp_notif *notice) {
  const struct seccomp_data *call = &notice->data;
  pid_t caller = (pid_t)notice->pid;
  struct image *image = &target->images[0];
  bool at = call->nr == SYS_execveat;
  const __u64 *arguments = call->args + (at ? 1 : 0);
  target->count = 1;
  target->unknown = NULL;
  target->folder = NULL;
  words_clear(&target->words[0]);
  image->path[0] = 0;
  image->mapped = false;
  image->of_runner = false;
  image->unknown = NULL;
  if (!callers_text(caller, arguments[0], image->called)) {
    image->called[0] = 0;
    return unread(target, "the memory of its caller cannot be read");
  }
  enum image_found found = image_find(caller, at ? (int)call->args[0] : AT_FDCWD, at ? (int)call->args[4] : 0, image);
  target->error = image->error;
  if (found == IMAGE_MISSING) return found;
  target->unknown = image->unknown;
  if (words_read(caller, arguments[1], &target->words[0])) return found;
  return unread(target, "its arguments cannot be read");
}

/* False: the text is too long for a path. */
static bool call(struct image *image, const char *folder, const char *name) {
  bool relative = folder != NULL && name[0] != '/';
  int length = snprintf(image->called, sizeof image->called, "%s%s%s", relative ? folder : "", relative ? "/" : "", name);
  return length < (int)sizeof image->called;
}

enum image_found target_begin(struct target *target, pid_t caller, const char *folder, const char *path) {
  struct image *image = &target->images[0];
  target->count = 1;
  target->unknown = NULL;
  target->folder = folder;
  words_clear(&target->words[0]);
  image->mapped = false;
  image->of_runner = true;
  if (!call(image, folder, path)) {
    image->path[0] = 0;
    image->unknown = target->unknown = "its path is too long";
    return IMAGE_UNKNOWN;
  }
  enum image_found found = image_find(caller, AT_FDCWD, 0, image);
  target->unknown = image->unknown;
  return found;
}

static bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

/* Parses "#! program argument"; the rest of the line is a single argument (binfmt_script.c). False: the
   kernel finds no program in the line. */
static bool read_line(const struct image *image, char program[IMAGE_HEAD], char argument[IMAGE_HEAD]) {
  const char *at = image->head + 2, *end = memchr(image->head, '\n', image->head_length);
  if (end == NULL) end = image->head + strnlen(image->head, image->head_length);
  while (end > at && is_blank(end[-1])) end--;
  while (at < end && is_blank(*at)) at++;
  size_t length = 0;
  while (at + length < end && !is_blank(at[length]) && at[length] != 0) length++;
  if (length == 0) return false;
  memcpy(program, at, length);
  program[length] = 0;
  at += length;
  while (at < end && is_blank(*at)) at++;
  length = at < end ? strnlen(at, (size_t)(end - at)) : 0;
  memcpy(argument, at, length);
  argument[length] = 0;
  return true;
}

/* Adds the next file by its name. NULL: the table is full, or the file cannot run. */
static struct image *add(struct target *target, pid_t caller, const char *called, bool mapped) {
  if (target->count == TARGET_FILES) {
    target->unknown = "too many scripts and loaders lead to it";
    return NULL;
  }
  struct image *image = &target->images[target->count];
  image->mapped = mapped;
  image->of_runner = target->folder != NULL;
  if (!call(image, target->folder, called) || image_find(caller, AT_FDCWD, 0, image) == IMAGE_MISSING) return NULL;
  if (target->unknown == NULL) target->unknown = image->unknown;
  words_clear(&target->words[target->count]);
  target->count++;
  return image;
}

static bool follow_script(struct target *target, pid_t caller) {
  int last = target->count - 1;
  const struct image *script = &target->images[last];
  char program[IMAGE_HEAD], argument[IMAGE_HEAD];
  if (script->head_length == 0 || !read_line(script, program, argument)) return false;
  if (add(target, caller, program, false) == NULL) return false;
  struct words *words = &target->words[last + 1];
  words_add(words, program);
  if (argument[0] != 0) words_add(words, argument);
  /* The kernel names a descriptor by its number, which no rule depends on. */
  words_add(words, script->called[0] == 0 ? "/dev/fd" : script->called);
  words_append(words, &target->words[last], 1);
  return true;
}

/* Options of ld.so(8) with a separate value. */
static const char *const WITH_WORD[] = {"--library-path", "--inhibit-rpath", "--audit",
                                        "--preload",      "--argv0",         "--glibc-hwcaps-prepend",
                                        "--glibc-hwcaps-mask"};

static bool takes_word(const char *option) {
  for (size_t i = 0; i < sizeof WITH_WORD / sizeof *WITH_WORD; i++) {
    if (strcmp(option, WITH_WORD[i]) == 0) return true;
  }
  return false;
}

static bool follow_loader(struct target *target, struct gate *gate, pid_t caller) {
  int last = target->count - 1;
  const struct words *words = &target->words[last];
  if (target->images[last].path[0] == 0 || !gate_loads(gate, &target->images[last])) return false;
  const char *at = words->text;
  size_t index = 0;
  for (; index < words->count; index++) {
    bool skip = index == 0 || strncmp(at, "--", 2) == 0;
    if (!skip) break;
    if (index > 0 && takes_word(at)) {
      at += strlen(at) + 1;
      index++;
    }
    if (index < words->count) at += strlen(at) + 1;
  }
  if (index >= words->count) return false;
  if (strchr(at, '/') == NULL) {
    target->unknown = "the dynamic loader would search for it by its name";
    return false;
  }
  if (add(target, caller, at, true) == NULL) return false;
  words_append(&target->words[last + 1], words, index);
  return true;
}

void target_follow(struct target *target, struct gate *gate, pid_t caller) {
  while (follow_script(target, caller) || follow_loader(target, gate, caller)) continue;
}
