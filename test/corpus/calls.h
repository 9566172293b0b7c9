/*
 * How a program's call is written down in the closed root: COUNT NUL PROGRAM NUL WORD NUL …, in one write, so that lines of
 * several processes do not mix. For the recorder (recorder.c) and for what shells have loaded (preload.c).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define LOG "/log"
#define LONGEST_COMMAND (128 * 1024)

/* Programs that become the real ones: what they start is what matters. */
static const char *const REAL[] = {
    "env",  "nohup", "nice",     "timeout", "xargs", "find",   "stdbuf", "setsid", "sh",    "bash",    "dash",
    "cat",  "tee",   "seq",      "head",    "tail",  "sort",   "tr",     "sed",    "grep",  "awk",     "mawk",
    "git",  "tar",   "basename", "dirname", "date",  "script", "flock",  "ionice", "chrt",  "taskset", "setpriv",
    "perl", "vim",   "vim.basic", "printf", "touch", "mkdir",  "cut",    "wc",     "uniq",  "true",    "false",
    "test", "[",     "echo",     "id",      "split", "make",   "yes",    "ln",     "prlimit", "chroot", "less",
};

static void fail(const char *what) {
  perror(what);
  _exit(99);
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash == NULL ? path : slash + 1;
}

static int is_real(const char *program) {
  for (size_t i = 0; i < sizeof REAL / sizeof *REAL; i++)
    if (strcmp(REAL[i], base_name(program)) == 0) return 1;
  return 0;
}

static void add(char *line, size_t *used, const char *text) {
  size_t length = strlen(text) + 1;
  if (*used + length >= LONGEST_COMMAND) _exit(98);
  memcpy(line + *used, text, length);
  *used += length;
}

/* Says how long the log is now. */
static off_t record(const char *program, int count, char *const *words) {
  static char line[LONGEST_COMMAND];
  char number[16];
  size_t used = 0;
  snprintf(number, sizeof number, "%d", count);
  add(line, &used, number);
  add(line, &used, count > 0 && strchr(words[0], '/') != NULL ? program : base_name(program));
  for (int i = 1; i < count; i++) add(line, &used, words[i]);
  int log = open(LOG, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (log < 0) fail(LOG);
  if (write(log, line, used) != (ssize_t)used) fail(LOG);
  off_t size = lseek(log, 0, SEEK_END);
  close(log);
  return size;
}
