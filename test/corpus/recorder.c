/*
 * One program under many names, in the corpus' closed root. As PID 1 (`/driver SHELL FIRST LAST`) it runs the commands
 * /cases/FIRST … /cases/LAST; under any other name it writes down how it was called and then, for the programs whose
 * doings matter (wrappers, shells, filters), becomes the real one. Nothing else of the machine can be started in there.
 */
#include "calls.h"

#include <poll.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

/* A loop around a recorded program ends when this much was recorded. */
#define ENOUGH 4000
/* The same where one log holds many commands. */
#define ENOUGH_IN_ALL (256L * 1024 * 1024)
#define SECONDS_EACH 2
/* The same where many texts follow one another. */
#define MILLISECONDS_OF_MANY 1000

/* These names lead through /etc/alternatives back to a recorder. */
static const char *behind_link(const char *name) {
  if (strcmp(name, "awk") == 0) return "mawk";
  return strcmp(name, "vim") == 0 ? "vim.basic" : name;
}

static int recorded(int count, char **words) {
  const char *program = (const char *)getauxval(AT_EXECFN);
  off_t size = strncmp(program, "/real/", 6) == 0 ? 0 : record(program, count, words);
  if (size > (getenv("LD_PRELOAD") == NULL ? ENOUGH : ENOUGH_IN_ALL)) return 1;
  if (!is_real(program)) return 0;
  char path[PATH_MAX];
  snprintf(path, sizeof path, "/real/bin/%s", behind_link(base_name(program)));
  execv(path, words);
  fail(path);
  return 1;
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

/* Runs each of the texts in a child of one shell, and says so: a mark in the log, a byte for who waits. */
static const char MANY[] =
    "i=$1; while [ $i -le $2 ]; do\n"
    "( cd /place; . /cases/$i; wait ) </dev/null >/dev/null 2>&1 8>&-\n"
    "printf '0\\0%s\\0' $i >>/log; printf x >&8; i=$((i+1)); done";

static pid_t start_many(const char *shell, int next, int last, int done) {
  pid_t pid = fork();
  if (pid < 0) fail("fork");
  if (pid > 0) return pid;
  char path[PATH_MAX], from[16], to[16];
  snprintf(path, sizeof path, "/real/bin/%s", shell);
  snprintf(from, sizeof from, "%d", next);
  snprintf(to, sizeof to, "%d", last);
  int null = open("/dev/null", O_RDWR);
  if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(done, 8) < 0 || setsid() < 0) fail("descriptors");
  char *variables[] = {"PATH=/usr/bin", "HOME=/home/ann", "LC_ALL=C", "LD_PRELOAD=/preload.so", NULL};
  char *words[] = {(char *)shell, "-c", (char *)MANY, "many", from, to, NULL};
  execve(path, words, variables);
  fail(path);
  return -1;
}

/* A text that takes longer than MILLISECONDS_OF_MANY is ended with its shell, and the next shell goes on behind it. */
static int drive_many(const char *shell, int first, int last) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) < 0) fail("pipe2");
  if (chdir("/place") < 0) fail("/place");
  write_file("a.txt", "#one\n");
  write_file("b.txt", "#two\n");
  write_file(LOG, "");
  for (int next = first; next <= last;) {
    start_many(shell, next, last, ends[1]);
    struct pollfd wait = {ends[0], POLLIN, 0};
    while (next <= last && poll(&wait, 1, MILLISECONDS_OF_MANY) > 0) {
      char bytes[4096];
      ssize_t got = read(ends[0], bytes, sizeof bytes);
      if (got <= 0) fail("read");
      next += (int)got;
    }
    end_everything();
    if (next > last) break;
    char mark[32];
    int length = snprintf(mark, sizeof mark, "-1%c%d", 0, next) + 1;
    int log = open(LOG, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (log < 0 || write(log, mark, (size_t)length) != length) fail(LOG);
    close(log);
    next++;
  }
  char path[PATH_MAX];
  snprintf(path, sizeof path, "/out/%s-many.log", shell);
  if (rename(LOG, path) < 0) fail(path);
  return 0;
}

int main(int count, char **words) {
  if (strcmp((const char *)getauxval(AT_EXECFN), "/driver") == 0 && count == 4)
    return drive(words[1], atoi(words[2]), atoi(words[3]));
  if (strcmp((const char *)getauxval(AT_EXECFN), "/driver") == 0 && count == 5)
    return drive_many(words[1], atoi(words[2]), atoi(words[3]));
  return recorded(count, words);
}
