#define _GNU_SOURCE
#include "run/program.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/fields.h"
#include "lib/frames.h"
#include "lib/jobs.h"
#include "seccomp/filter.h"

/* Pointers of an ordinary command; a larger command maps its table. */
#define SMALL_POINTERS 1024

const char *program_check(uint8_t *payload, size_t length, size_t *arguments, size_t *variables) {
  struct field_reader reader = {payload, payload + length};
  struct field field;
  size_t folders = 0;
  int got;
  *arguments = *variables = 0;
  while ((got = field_next(&reader, &field)) > 0) {
    switch (field.tag) {
      case TAG_ARG:
        if (!field_is_string(&field, 0)) return "EXEC: bad ARG";
        (*arguments)++;
        break;
      case TAG_ENV:
        if (!field_is_string(&field, 2) || memchr(field.data + 1, '=', field.length - 1) == NULL) {
          return "EXEC: bad ENV";
        }
        (*variables)++;
        break;
      case TAG_CWD:
        if (folders++ > 0 || !field_is_string(&field, 1) || field.data[0] != '/') return "EXEC: bad CWD";
        break;
      default:
        return "EXEC: unknown tag";
    }
  }
  if (got < 0) return "EXEC: malformed field";
  return *arguments == 0 ? "EXEC: no ARG" : NULL;
}

static char *small_table[SMALL_POINTERS];

void program_warm(void) {
  *(char *volatile *)small_table = NULL;
}

int program_unpack(uint8_t *payload, size_t length, struct program *program) {
  size_t arguments, variables;
  if (program_check(payload, length, &arguments, &variables) != NULL) {
    errno = EPROTO;
    return -1;
  }
  /* argv, "/bin/sh" + argv, envp, each with its NULL. */
  size_t needed = 2 * arguments + variables + 4;
  char **table = small_table;
  if (needed > SMALL_POINTERS) {
    table = mmap(NULL, needed * sizeof *table, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (table == MAP_FAILED) return -1;
  }
  *program = (struct program){.argv = table,
                              .shell_argv = table + arguments + 1,
                              .envp = table + 2 * arguments + 3,
                              .cwd = "/",
                              .search = PROGRAM_PATH};
  struct field_reader reader = {payload, payload + length};
  struct field field;
  size_t argument = 0, variable = 0;
  static char shell[] = "/bin/sh";
  program->shell_argv[0] = shell;
  while (field_next(&reader, &field) > 0) {
    char *text = field_terminate(&field);
    if (field.tag == TAG_ARG) {
      program->shell_argv[argument + 1] = text;
      program->argv[argument++] = text;
    } else if (field.tag == TAG_ENV) {
      if (strncmp(text, "PATH=", 5) == 0) program->search = text + 5;
      program->envp[variable++] = text;
    } else {
      program->cwd = text;
    }
  }
  program->argv[arguments] = program->shell_argv[arguments + 1] = program->envp[variables] = NULL;
  return 0;
}

static void run(const struct program *program, const char *file) {
  filter_execute(file, program->argv, program->envp, program->asked);
  if (errno != ENOEXEC) return;
  /* A script without an interpreter line, as execvp(3) does. */
  program->shell_argv[1] = (char *)(uintptr_t)file;
  filter_execute(program->shell_argv[0], program->shell_argv, program->envp, program->asked);
}

int program_execute(const struct program *program) {
  static char candidate[PATH_MAX];
  const char *name = program->argv[0];
  size_t length = strlen(name);
  int denied = 0;
  if (length == 0) return ENOENT;
  if (strchr(name, '/') != NULL) {
    run(program, name);
    return errno;
  }
  for (const char *folder = program->search;; folder++) {
    size_t size = strcspn(folder, ":");
    if (size + length + 2 <= sizeof candidate) {
      memcpy(candidate, folder, size);
      if (size > 0) candidate[size++] = '/';
      memcpy(candidate + size, name, length + 1);
      run(program, candidate);
      if (errno == EACCES) denied = 1;
      else if (errno != ENOENT && errno != ENOTDIR) return errno;
    }
    folder += strcspn(folder, ":");
    if (*folder == 0) return denied ? EACCES : ENOENT;
  }
}
