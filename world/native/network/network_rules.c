#define _GNU_SOURCE
#include "network/network_rules.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "network/node_channel.h"

/* Makes a file in memory instead of a pipe: nft may fail before reading the whole input. */
static int text_file(const char *text) {
  size_t length = strlen(text);
  int fd = memfd_create("rules", MFD_CLOEXEC);
  if (fd < 0) return -1;
  if (write(fd, text, length) == (ssize_t)length && lseek(fd, 0, SEEK_SET) == 0) return fd;
  close(fd);
  return -1;
}

_Noreturn static void run(const char *nft, int rules, int complaints) {
  char *environment[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", NULL};
  char *words[] = {"nft", "-f", "-", NULL};
  signal(SIGPIPE, SIG_DFL);
  if (dup2(rules, 0) < 0 || dup2(complaints, 1) < 0 || dup2(complaints, 2) < 0) _exit(126);
  execve(nft, words, environment);
  _exit(errno == ENOENT ? 127 : 126);
}

static void read_complaint(int pipe, char *complaint, size_t size) {
  size_t filled = 0;
  char rest[256];
  for (;;) {
    bool room = filled + 1 < size;
    ssize_t count = room ? read(pipe, complaint + filled, size - 1 - filled) : read(pipe, rest, sizeof rest);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    if (room) filled += (size_t)count;
  }
  complaint[filled] = 0;
  node_clean(complaint);
}

bool network_rules_apply(const char *nft, const char *text, char *complaint, size_t size) {
  int ends[2];
  int status;
  int rules = text_file(text);
  if (rules < 0 || pipe2(ends, O_CLOEXEC) < 0) {
    snprintf(complaint, size, "cannot write the rules to a file: errno %d", errno);
    if (rules >= 0) close(rules);
    return false;
  }
  pid_t child = fork();
  if (child == 0) run(nft, rules, ends[1]);
  close(rules);
  close(ends[1]);
  if (child > 0) read_complaint(ends[0], complaint, size);
  close(ends[0]);
  if (child < 0) {
    snprintf(complaint, size, "fork: errno %d", errno);
    return false;
  }
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return false;
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
  if (complaint[0] == 0) snprintf(complaint, size, "nft ended with status %d", status);
  return false;
}
