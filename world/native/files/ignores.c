#define _GNU_SOURCE
#include "files/ignores.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/globs.h"

#define FILE_MAX_BYTES (256 * 1024)

static char *read_text(int folder) {
  struct stat status;
  int fd = openat(folder, ".gitignore", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  char *text = NULL;
  if (fd < 0) return NULL;
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && (text = malloc(FILE_MAX_BYTES + 1)) != NULL) {
    ssize_t length = read(fd, text, FILE_MAX_BYTES);
    text[length < 0 ? 0 : length] = 0;
  }
  close(fd);
  return text;
}

struct ignores *ignores_read(int folder, const char *prefix, struct ignores *above) {
  char *text = read_text(folder);
  if (text == NULL) return NULL;
  struct ignores *ignores = calloc(1, sizeof *ignores);
  size_t lines = 1;
  for (const char *at = text; *at != 0; at++) lines += *at == '\n';
  if (ignores != NULL) *ignores = (struct ignores){above, strdup(prefix), text, calloc(lines, sizeof(char *)), 0};
  if (ignores == NULL || ignores->prefix == NULL || ignores->lines == NULL) _exit(1);
  for (char *next = text, *line; (line = strsep(&next, "\n")) != NULL;) {
    size_t length = strcspn(line, "\r");
    while (length > 0 && line[length - 1] == ' ' && (length < 2 || line[length - 2] != '\\')) length--;
    line[length] = 0;
    if (length > 0 && line[0] != '#') ignores->lines[ignores->count++] = line;
  }
  return ignores;
}

struct ignores *ignores_free(struct ignores *ignores) {
  struct ignores *above = ignores->above;
  free(ignores->prefix);
  free(ignores->text);
  free(ignores->lines);
  free(ignores);
  return above;
}

/* Matches a line without its `!` (gitignore(5)). */
static bool line_matches(const char *line, const char *path, bool is_folder) {
  char pattern[4096];
  size_t length = strlen(line);
  if (length == 0 || length + 4 > sizeof pattern) return false;
  bool folders_only = line[length - 1] == '/';
  if (folders_only) length--;
  if (folders_only && !is_folder) return false;
  bool anchored = memchr(line, '/', length) != NULL;
  if (line[0] == '/') {
    line++;
    length--;
  }
  memcpy(pattern, "**/", 3);
  memcpy(pattern + 3, line, length);
  pattern[3 + length] = 0;
  return glob_matches(anchored ? pattern + 3 : pattern, path);
}

bool ignores_name(const struct ignores *ignores, const char *path, bool is_folder) {
  for (; ignores != NULL; ignores = ignores->above) {
    size_t prefix = strlen(ignores->prefix);
    if (strncmp(path, ignores->prefix, prefix) != 0) continue;
    for (size_t at = ignores->count; at > 0; at--) {
      const char *line = ignores->lines[at - 1];
      bool kept = line[0] == '!';
      if (line_matches(line + kept, path + prefix, is_folder)) return !kept;
    }
  }
  return false;
}
