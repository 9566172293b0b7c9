#define _GNU_SOURCE
#include "outer/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "lib/descriptors.h"
#include "lib/failure.h"

static bool is_used(const struct limits *limits) {
  return limits->cgroup[0] != 0;
}

void cgroup_take(const struct limits *limits) {
  struct statfs about;
  if (!is_used(limits)) {
    /* Fails without an inherited fd 4, which is fine. */
    close(CGROUP_FD);
    return;
  }
  if (fcntl(CGROUP_FD, F_SETFD, FD_CLOEXEC) < 0) fail_world("cgroup", limits->cgroup, errno);
  if (fstatfs(CGROUP_FD, &about) < 0) fail_world("cgroup", limits->cgroup, errno);
  if (about.f_type != CGROUP2_SUPER_MAGIC) fail_world("cgroup", limits->cgroup, EPROTO);
}

/* Closes fd 4 only if used: otherwise the number may belong to another file by now. */
void cgroup_let_go(const struct limits *limits) {
  if (is_used(limits)) close(CGROUP_FD);
}

pid_t cgroup_fork_init(const struct limits *limits) {
  if (!is_used(limits)) return fork();
  int folder = openat(CGROUP_FD, "init", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) fail_world("cgroup", "init", errno);
  /* Born in the group: moving a process takes a lock that costs some 13 ms on an idle machine (an RCU grace
     period). */
  struct clone_args args = {
      .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t)folder};
  pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
  return close_keeping_errno(folder, pid);
}

static void remove_commands(void) {
  int folder = openat(CGROUP_FD, "commands", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *entries = folder < 0 ? NULL : fdopendir(folder);
  if (entries == NULL) {
    if (folder >= 0) close(folder);
    return;
  }
  const struct dirent *entry;
  while ((entry = readdir(entries)) != NULL) {
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.') unlinkat(folder, entry->d_name, AT_REMOVEDIR);
  }
  closedir(entries);
}

/* Groups that cannot be removed are left to the next broker, which recognises the owner by the name. */
void cgroup_remove(const struct limits *limits) {
  char self[CGROUP_NAME_MAX + sizeof "../"];
  if (!is_used(limits)) return;
  remove_commands();
  unlinkat(CGROUP_FD, "commands", AT_REMOVEDIR);
  unlinkat(CGROUP_FD, "init", AT_REMOVEDIR);
  snprintf(self, sizeof self, "../%s", limits->cgroup);
  unlinkat(CGROUP_FD, self, AT_REMOVEDIR);
}
