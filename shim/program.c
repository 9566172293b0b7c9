#define _GNU_SOURCE
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What execvp(3) takes where there is no PATH. */
#define DEFAULT_PATH "/bin:/usr/bin"

/* Of whatever name, by whatever link: a shim is the file that this process runs. */
static bool is_shim(const struct stat *file) {
  struct stat own;
  return stat("/proc/self/exe", &own) == 0 && own.st_dev == file->st_dev && own.st_ino == file->st_ino;
}

void program_find(struct program *program, const char *name) {
  const char *rest = getenv("PATH");
  *program = (struct program){.name = name};
  buffer_text(&program->others, "");
  if (rest == NULL || *rest == 0) rest = DEFAULT_PATH;
  for (bool more = true; more;) {
    size_t length = strcspn(rest, ":");
    char candidate[PATH_MAX];
    struct stat file;
    /* An empty folder is the one we are in. */
    int written = snprintf(candidate, sizeof candidate, "%.*s%s%s", (int)length, rest, length == 0 ? "" : "/", name);
    bool there = written > 0 && (size_t)written < sizeof candidate && stat(candidate, &file) == 0 && S_ISREG(file.st_mode) &&
                 access(candidate, X_OK) == 0;
    bool shim = there && is_shim(&file);
    if (there && !shim && program->path[0] == 0) memcpy(program->path, candidate, (size_t)written + 1);
    if (!shim) {
      if (program->others.length > 0) buffer_text(&program->others, ":");
      buffer_add(&program->others, rest, length);
    }
    more = rest[length] == ':';
    rest += length + (more ? 1 : 0);
  }
}
