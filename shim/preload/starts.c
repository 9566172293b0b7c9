/* Wrappers of program starts. Calls between these functions inside the C library bypass the wrappers, so each
   start is reported once. */
#define _GNU_SOURCE
#include <alloca.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "real.h"
#include "report.h"

static const char SHELL[] = "/bin/sh";

/* Reports a name without a slash unchanged: the C library searches PATH, and report_path() would add the
   working directory. */
static void report_program(const char *file) {
  if (file != NULL && strchr(file, '/') == NULL) report_bytes(REPORT_EXEC, file, strlen(file));
  else report_path(REPORT_EXEC, AT_FDCWD, file);
}

SHOWN int execve(const char *path, char *const words[], char *const variables[]) {
  report_path(REPORT_EXEC, AT_FDCWD, path);
  return REAL(execve)(path, words, variables);
}

SHOWN int execv(const char *path, char *const words[]) {
  report_path(REPORT_EXEC, AT_FDCWD, path);
  return REAL(execv)(path, words);
}

SHOWN int execvp(const char *file, char *const words[]) {
  report_program(file);
  return REAL(execvp)(file, words);
}

SHOWN int execvpe(const char *file, char *const words[], char *const variables[]) {
  report_program(file);
  return REAL(execvpe)(file, words, variables);
}

SHOWN int fexecve(int fd, char *const words[], char *const variables[]) {
  report_descriptor(REPORT_EXEC, fd);
  return REAL(fexecve)(fd, words, variables);
}

SHOWN int execveat(int folder, const char *path, char *const words[], char *const variables[], int flags) {
  report_path(REPORT_EXEC, folder, path);
  return REAL(execveat)(folder, path, words, variables, flags);
}

SHOWN int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                      const posix_spawnattr_t *attributes, char *const words[], char *const variables[]) {
  report_path(REPORT_EXEC, AT_FDCWD, path);
  return REAL(posix_spawn)(pid, path, actions, attributes, words, variables);
}

SHOWN int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes, char *const words[], char *const variables[]) {
  report_program(file);
  return REAL(posix_spawnp)(pid, file, actions, attributes, words, variables);
}

SHOWN int system(const char *command) {
  if (command != NULL) report_path(REPORT_EXEC, AT_FDCWD, SHELL);
  return REAL(system)(command);
}

SHOWN FILE *popen(const char *command, const char *mode) {
  report_path(REPORT_EXEC, AT_FDCWD, SHELL);
  return REAL(popen)(command, mode);
}

/* Counts the words after the first, with the NULL behind the last; 0 for more than the C library accepts. */
static size_t count_words(va_list words) {
  size_t count = 1;
  while (va_arg(words, char *) != NULL) {
    if (++count == INT_MAX) return 0;
  }
  return count;
}

/* Copies a call's list of words into an array, on the stack as in the C library: a child of vfork(2) has no
   other memory. Leaves `rest` behind the NULL, at the variables of execle. */
#define WORDS_OF(first, words, rest)                                                \
  va_list rest;                                                                     \
  va_start(rest, first);                                                            \
  size_t count = count_words(rest);                                                 \
  va_end(rest);                                                                     \
  if (count == 0) {                                                                 \
    errno = E2BIG;                                                                  \
    return -1;                                                                      \
  }                                                                                 \
  char **words = alloca((count + 1) * sizeof *words);                               \
  words[0] = (char *)(ptrdiff_t)first;                                              \
  va_start(rest, first);                                                            \
  for (size_t i = 1; i <= count; i++) words[i] = va_arg(rest, char *);

SHOWN int execl(const char *path, const char *first, ...) {
  WORDS_OF(first, words, rest)
  va_end(rest);
  report_path(REPORT_EXEC, AT_FDCWD, path);
  return REAL(execv)(path, words);
}

SHOWN int execlp(const char *file, const char *first, ...) {
  WORDS_OF(first, words, rest)
  va_end(rest);
  report_program(file);
  return REAL(execvp)(file, words);
}

SHOWN int execle(const char *path, const char *first, ...) {
  WORDS_OF(first, words, rest)
  char **variables = va_arg(rest, char **);
  va_end(rest);
  report_path(REPORT_EXEC, AT_FDCWD, path);
  return REAL(execve)(path, words, variables);
}
