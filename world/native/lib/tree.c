#define _GNU_SOURCE
#include "lib/tree.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Greatest depth of a process below its leader. */
#define TREE_DEPTH 128
/* Number of rounds of killing, a millisecond apart. */
#define END_ALL_ATTEMPTS 1000

/* Static, neither on the stack nor allocated: leaders walk too, and pay only for touched pages. */
static struct tree_process processes[TREE_MAX];
static int found;

static void add(pid_t pid, pid_t parent) {
  if (found < TREE_MAX) processes[found++] = (struct tree_process){pid, parent};
}

/* Reads a thread's children, "12 13 14 ". A process that ended meanwhile has no children any more. */
static void add_children(int tasks, const char *thread, pid_t parent) {
  char path[64];
  char text[4096];
  snprintf(path, sizeof path, "%.20s/children", thread);
  int fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  pid_t number = 0;
  ssize_t count;
  while ((count = read(fd, text, sizeof text)) > 0) {
    for (ssize_t i = 0; i < count; i++) {
      if (isdigit((unsigned char)text[i])) {
        number = number * 10 + (text[i] - '0');
      } else if (number > 0) {
        add(number, parent);
        number = 0;
      }
    }
  }
  close(fd);
}

struct directory_entry {
  uint64_t inode;
  int64_t offset;
  unsigned short length;
  unsigned char type;
  char name[];
};

/* Each thread has its own list of forked children. */
static void add_children_of(int proc, pid_t pid) {
  char path[32];
  _Alignas(struct directory_entry) char entries[4096];
  snprintf(path, sizeof path, "%d/task", pid);
  int tasks = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (tasks < 0) return;
  long count;
  while ((count = syscall(SYS_getdents64, tasks, entries, sizeof entries)) > 0) {
    for (long at = 0; at < count;) {
      const struct directory_entry *entry = (const void *)(entries + at);
      if (isdigit((unsigned char)entry->name[0])) add_children(tasks, entry->name, pid);
      at += entry->length;
    }
  }
  close(tasks);
}

const struct tree_process *tree_below(int proc, pid_t root, int deep, int *count) {
  found = 0;
  add_children_of(proc, root);
  for (int i = 0; deep && i < found; i++) add_children_of(proc, processes[i].pid);
  *count = found;
  return processes;
}

/* Returns the parent of a process or thread; -1 when gone. Parses "12 (any name) S 11 …": the process chooses
   its name, possibly with brackets; the fields after it contain none. */
static pid_t parent_of(int proc, pid_t pid) {
  char path[32];
  char text[256];
  snprintf(path, sizeof path, "%d/stat", pid);
  int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t count = read(fd, text, sizeof text - 1);
  close(fd);
  if (count <= 0) return -1;
  text[count] = 0;
  const char *name_end = strrchr(text, ')');
  int parent;
  return name_end != NULL && sscanf(name_end + 1, " %*c %d", &parent) == 1 ? parent : -1;
}

pid_t tree_top(int proc, pid_t pid) {
  for (int depth = 0; depth < TREE_DEPTH; depth++) {
    pid_t parent = parent_of(proc, pid);
    if (parent == 1) return pid;
    if (parent <= 0) return 0;
    pid = parent;
  }
  return 0;
}

int tree_signal(int proc, pid_t root, int deep, int signal) {
  int count;
  const struct tree_process *list = tree_below(proc, root, deep, &count);
  for (int i = 0; i < count; i++) kill(list[i].pid, signal);
  return count;
}

void tree_end_all(void) {
  const struct timespec pause = {0, 1000000};
  for (int attempt = 0; attempt < END_ALL_ATTEMPTS; attempt++) {
    kill(-1, SIGKILL);
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) continue;
    if (pid < 0 && errno == ECHILD) return;
    nanosleep(&pause, NULL);
  }
}
