/*
 * One program under many names, in the corpus' closed root. As PID 1 (`/driver SHELL FIRST LAST`) it runs the commands
 * /cases/FIRST … /cases/LAST; under any other name it writes down how it was called and then, for the programs whose
 * doings matter (wrappers, shells, filters), becomes the real one. Nothing else of the machine can be started in there.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOG "/log"
/* A loop around a recorded program ends when this much was recorded. */
#define ENOUGH 4000
#define LONGEST_COMMAND (128 * 1024)
#define SECONDS_EACH 2

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

static void add(char *line, size_t *used, const char *text) {
  size_t length = strlen(text) + 1;
  if (*used + length >= LONGEST_COMMAND) _exit(98);
  memcpy(line + *used, text, length);
  *used += length;
}

/* COUNT NUL PROGRAM NUL WORD NUL …: one write, so that lines of several processes do not mix. */
static off_t record(const char *program, int count, char **words) {
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

/* These names lead through /etc/alternatives back to a recorder. */
static const char *behind_link(const char *name) {
  if (strcmp(name, "awk") == 0) return "mawk";
  return strcmp(name, "vim") == 0 ? "vim.basic" : name;
}

static int recorded(int count, char **words) {
  const char *program = (const char *)getauxval(AT_EXECFN);
  off_t size = strncmp(program, "/real/", 6) == 0 ? 0 : record(program, count, words);
  if (size > ENOUGH) return 1;
  for (size_t i = 0; i < sizeof REAL / sizeof *REAL; i++) {
    if (strcmp(REAL[i], base_name(program)) != 0) continue;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "/real/bin/%s", behind_link(REAL[i]));
    execv(path, words);
    fail(path);
  }
  return 0;
}

static void write_file(const char *path, const char *text) {
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0 || write(file, text, strlen(text)) < 0) fail(path);
  close(file);
}

/* A folder of its own for each command, with something for globs to find. */
static void enter_folder(const char *shell, int number) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "/place/%s-%d", shell, number);
  if (mkdir(path, 0755) < 0 || chdir(path) < 0) fail(path);
  write_file("a.txt", "#one\n#two\n");
  write_file("b.txt", "#three\n");
  if (mkdir("src", 0755) < 0) fail("src");
  write_file("src/c.txt", "#four\n");
}

static void run_command(const char *shell, int number) {
  static char text[LONGEST_COMMAND];
  char path[PATH_MAX];
  enter_folder(shell, number);
  snprintf(path, sizeof path, "/cases/%d", number);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
  if (length < 0) fail(path);
  text[length] = 0;
  snprintf(path, sizeof path, "/out/%s-%d.err", shell, number);
  int null = open("/dev/null", O_RDWR);
  int errors = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (null < 0 || errors < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(errors, 2) < 0) fail(path);
  if (setsid() < 0) fail("setsid");
  char *variables[] = {"PATH=/usr/bin", "HOME=/home/ann", "LC_ALL=C", NULL};
  char *words[] = {"/bin/sh", "-c", text, NULL};
  snprintf(path, sizeof path, "/real/bin/%s", shell);
  if (strcmp(shell, "bash") == 0) words[0] = "/bin/bash";
  execve(path, words, variables);
  fail(path);
}

static void end_everything(void) {
  kill(-1, SIGKILL);
  while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) continue;
}

/* Waits for the command itself, at most SECONDS_EACH; what it left behind is ended. */
static void await_command(pid_t pid) {
  struct timespec pause = {0, 1000000};
  for (int left = SECONDS_EACH * 1000; left > 0; left--) {
    pid_t ended = waitpid(pid, NULL, WNOHANG);
    if (ended == pid || (ended < 0 && errno == ECHILD)) break;
    nanosleep(&pause, NULL);
  }
  /* What runs in the background has a moment to say so. */
  for (int left = 60; left > 0 && waitpid(-1, NULL, WNOHANG) >= 0; left--) nanosleep(&pause, NULL);
  end_everything();
}

static int drive(const char *shell, int first, int last) {
  for (int number = first; number <= last; number++) {
    char path[PATH_MAX];
    write_file(LOG, "");
    if (chmod(LOG, 0666) < 0) fail(LOG);
    pid_t pid = fork();
    if (pid < 0) fail("fork");
    if (pid == 0) run_command(shell, number);
    await_command(pid);
    snprintf(path, sizeof path, "/out/%s-%d.log", shell, number);
    if (rename(LOG, path) < 0) fail(path);
  }
  return 0;
}

int main(int count, char **words) {
  if (strcmp((const char *)getauxval(AT_EXECFN), "/driver") == 0 && count == 4)
    return drive(words[1], atoi(words[2]), atoi(words[3]));
  return recorded(count, words);
}
