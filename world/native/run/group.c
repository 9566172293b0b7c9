#define _GNU_SOURCE
#include "run/group.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/failure.h"
#include "outer/cgroup.h"

/* Buffer for the files: cpu.stat has some 300 bytes, and only its first line is needed. */
#define FILE_MAX 512
/* Empty groups kept for later commands, with their files open. */
#define SPARES_MAX 8

enum { FOLDER, KILL, CPU, MEMORY_PEAK, MEMORY_EVENTS, PIDS_PEAK, PIDS_EVENTS, FILES };

static const struct {
  const char *name;
  int flags;
  bool needed; /* other files come with a controller, or with a newer kernel */
} FILE_TABLE[FILES] = {
    [FOLDER] = {".", O_RDONLY | O_DIRECTORY, true},
    [KILL] = {"cgroup.kill", O_WRONLY, true},
    [CPU] = {"cpu.stat", O_RDONLY, true},
    [MEMORY_PEAK] = {"memory.peak", O_RDONLY, false},
    [MEMORY_EVENTS] = {"memory.events", O_RDONLY, false},
    [PIDS_PEAK] = {"pids.peak", O_RDONLY, false},
    [PIDS_EVENTS] = {"pids.events", O_RDONLY, false},
};

struct group {
  char name[24];
  int files[FILES]; /* -1: missing */
  int64_t cpu_before; /* time used by earlier commands in this group */
  struct group *next;
};

static int commands = -1;
static struct limits limits;
static uint64_t made;
static struct group *doomed; /* groups with processes still dying */
static struct group *spare;  /* empty groups with open files, ready for reuse */
static int spares;

void groups_open(const struct limits *wanted) {
  limits = *wanted;
  if (limits.cgroup[0] == 0) return;
  commands = openat(CGROUP_FD, "commands", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (commands < 0) fail_world("cgroup", "commands", errno);
  cgroup_let_go(&limits);
}

uint64_t groups_descriptors(void) {
  return commands < 0 ? 0 : FILES;
}

/* Reads the number in the line that begins with `key`, or in the only line. -1: missing. */
static int64_t read_number(const struct group *group, int file, const char *key) {
  char text[FILE_MAX];
  if (group->files[file] < 0) return -1;
  ssize_t length = pread(group->files[file], text, sizeof text - 1, 0);
  if (length <= 0) return -1;
  text[length] = 0;
  const char *line = text;
  while (key != NULL && line != NULL && strncmp(line, key, strlen(key)) != 0) {
    line = strchr(line, '\n');
    if (line != NULL) line++;
  }
  return line == NULL ? -1 : strtoll(key == NULL ? line : line + strlen(key), NULL, 10);
}

static void must_write(const struct group *group, const char *name, uint64_t number) {
  char text[32];
  int length = snprintf(text, sizeof text, "%llu", (unsigned long long)number);
  int fd = openat(group->files[FOLDER], name, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, text, (size_t)length) != length) fail_world("cgroup", name, errno);
  close(fd);
}

static void open_files(struct group *group) {
  int folder = openat(commands, group->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) fail_world("cgroup", group->name, errno);
  group->files[FOLDER] = folder;
  for (int i = FOLDER + 1; i < FILES; i++) {
    group->files[i] = openat(folder, FILE_TABLE[i].name, FILE_TABLE[i].flags | O_CLOEXEC);
    if (group->files[i] >= 0) continue;
    if (FILE_TABLE[i].needed || errno != ENOENT) fail_world("cgroup", FILE_TABLE[i].name, errno);
  }
}

static struct group *make(void) {
  struct group *group = calloc(1, sizeof *group);
  if (group == NULL) fail_world("cgroup", "", ENOMEM);
  snprintf(group->name, sizeof group->name, "%llu", (unsigned long long)++made);
  if (mkdirat(commands, group->name, 0755) < 0) fail_world("cgroup", group->name, errno);
  open_files(group);
  if (limits.memory != 0) must_write(group, "memory.oom.group", 1);
  if (limits.pids != 0) must_write(group, "pids.max", limits.pids);
  return group;
}

struct group *group_take(void) {
  groups_clear();
  if (commands < 0) return NULL;
  if (spare == NULL) return make();
  struct group *group = spare;
  spare = group->next;
  spares--;
  group->cpu_before = read_number(group, CPU, "usage_usec ");
  return group;
}

int group_handles(const struct group *group, int handles[GROUP_HANDLES]) {
  if (group == NULL) return 0;
  handles[0] = group->files[FOLDER];
  handles[1] = group->files[KILL];
  return GROUP_HANDLES;
}

void group_measure(const struct group *group, struct measured *measured) {
  *measured = (struct measured){-1, -1, -1, -1, -1};
  if (group == NULL) return;
  int64_t cpu = read_number(group, CPU, "usage_usec ");
  if (cpu >= 0 && group->cpu_before >= 0) measured->cpu_us = cpu - group->cpu_before;
  measured->memory_peak = read_number(group, MEMORY_PEAK, NULL);
  measured->oom_kill = read_number(group, MEMORY_EVENTS, "oom_kill ");
  measured->pids_peak = read_number(group, PIDS_PEAK, NULL);
  measured->pids_max = read_number(group, PIDS_EVENTS, "max ");
}

/* Removes a group; true when gone. */
static bool removed(struct group *group) {
  if (unlinkat(commands, group->name, AT_REMOVEDIR) < 0 && errno == EBUSY) return false;
  free(group);
  return true;
}

static void remove_soon(struct group *group) {
  for (int i = 0; i < FILES; i++) {
    if (group->files[i] >= 0) close(group->files[i]);
  }
  if (removed(group)) return;
  group->next = doomed;
  doomed = group;
}

/* Not every kernel can reset peaks and events. */
static bool may_serve_again(const struct group *group) {
  for (int i = 0; i < FILES; i++) {
    if (!FILE_TABLE[i].needed && group->files[i] >= 0) return false;
  }
  return spares < SPARES_MAX;
}

void group_end(struct group *group, bool killed) {
  if (group == NULL) return;
  /* A process born by CLONE_INTO_CGROUP into a group that was ever killed is killed too: the kernel (6.13)
     counts the kills of both groups, the parent's before the birth and the child's after, and takes a
     difference for a kill. */
  if (killed || !may_serve_again(group)) return remove_soon(group);
  group->next = spare;
  spare = group;
  spares++;
}

void group_destroy(struct group *group) {
  if (group == NULL) return;
  if (write(group->files[KILL], "1", 1) != 1) fail_world("cgroup", "cgroup.kill", errno);
  remove_soon(group);
}

void groups_clear(void) {
  struct group *left = doomed;
  doomed = NULL;
  while (left != NULL) {
    struct group *group = left;
    left = group->next;
    if (removed(group)) continue;
    group->next = doomed;
    doomed = group;
  }
}
