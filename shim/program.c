#define _GNU_SOURCE
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

/* Search path of execvp(3) without PATH. */
#define DEFAULT_PATH "/bin:/usr/bin"

/* The kernel follows as many links at most (MAXSYMLINKS, include/linux/namei.h). */
#define MOST_LINKS 40

static const char *last_part(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash == NULL ? path : slash + 1;
}

/* Whether a path leads, under any name and link, to a shim of this or another installation. Shims of two
   installations, each taking the other for the real program, would call each other for ever. */
static bool is_shim(const char *path) {
  struct stat own, file;
  char real[PATH_MAX];
  if (stat(path, &file) < 0) return false;
  if (stat("/proc/self/exe", &own) == 0 && own.st_dev == file.st_dev && own.st_ino == file.st_ino) return true;
  return realpath(path, real) != NULL && strcmp(last_part(real), SHIM_FILE) == 0;
}

/* Stores the name of the last link before the shim's file. Earlier links may lead to the last, as `python` of
   a venv to python3. */
static void name_of(const char *path, char name[NAME_MAX + 1]) {
  char at[PATH_MAX], target[PATH_MAX];
  snprintf(at, sizeof at, "%s", path);
  for (int links = 0; links < MOST_LINKS; links++) {
    ssize_t length = readlink(at, target, sizeof target - 1);
    if (length < 0) break;
    target[length] = 0;
    if (strcmp(last_part(target), SHIM_FILE) == 0) break;
    size_t folder = target[0] == '/' ? 0 : (size_t)(last_part(at) - at);
    if (folder + (size_t)length >= sizeof at) break;
    memcpy(at + folder, target, (size_t)length + 1);
  }
  size_t length = strnlen(last_part(at), NAME_MAX);
  memcpy(name, last_part(at), length);
  name[length] = 0;
}

void program_name(char name[NAME_MAX + 1], const char *first_word) {
  const char *started = (const char *)getauxval(AT_EXECFN);
  if (started == NULL) started = SHIM_FILE;
  /* For a script with a shim in its `#!` line, AT_EXECFN is the script; the first word is the shim. */
  name_of(!is_shim(started) && is_shim(first_word) ? first_word : started, name);
}

/* Whether PATH has the same folder earlier: a second search there finds no other program. */
static bool is_again(const char *path, const char *folder, size_t length) {
  while (path < folder) {
    size_t other = strcspn(path, ":");
    if (other == length && memcmp(path, folder, length) == 0) return true;
    path += other + 1;
  }
  return false;
}

static void add_folder(struct buffer *others, const char *folder, size_t length) {
  if (others->length > 0) buffer_text(others, ":");
  if (length == 0) buffer_text(others, ".");
  else buffer_add(others, folder, length);
}

/* Rule for calls without a broker: the broker writes the file into the shims folder at each read of the policies. */
#define OF_BROKER "/shims/.offline"

static void note_home(struct program *program, const char *folder, size_t length) {
  static const char SHIMS[] = "/shims";
  const size_t end = sizeof SHIMS - 1;
  char file[PATH_MAX];
  if (program->home[0] != 0 || folder[0] != '/' || length <= end || length >= PATH_MAX) return;
  if (memcmp(folder + length - end, SHIMS, end) != 0) return;
  int written = snprintf(file, sizeof file, "%.*s" OF_BROKER, (int)(length - end), folder);
  if (written < 0 || (size_t)written >= sizeof file || access(file, R_OK) < 0) return;
  memcpy(program->home, folder, length - end);
}

void program_find(struct program *program, const char *name) {
  const char *rest = getenv("PATH");
  *program = (struct program){.name = name};
  buffer_text(&program->others, "");
  if (rest == NULL || *rest == 0) rest = DEFAULT_PATH;
  const char *path = rest;
  size_t folders = 0;
  for (bool more = true; more;) {
    size_t length = strcspn(rest, ":");
    char candidate[PATH_MAX];
    struct stat file;
    /* An empty entry means the working directory. */
    int written = snprintf(candidate, sizeof candidate, "%.*s%s%s", (int)length, rest, length == 0 ? "" : "/", name);
    bool there = written > 0 && (size_t)written < sizeof candidate && stat(candidate, &file) == 0 && S_ISREG(file.st_mode) &&
                 access(candidate, X_OK) == 0;
    bool shim = there && is_shim(candidate);
    if (shim) note_home(program, rest, length);
    if (!shim && !is_again(path, rest, length)) {
      add_folder(&program->others, rest, length);
      if (there && program->path[0] == 0) {
        memcpy(program->path, candidate, (size_t)written + 1);
        program->is_far = folders >= MOST_FOLDERS;
      }
      folders++;
    }
    more = rest[length] == ':';
    rest += length + (more ? 1 : 0);
  }
}
