#define _GNU_SOURCE
#include "mount/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/failure.h"
#include "lib/mount_api.h"
#include "mount/host_overlays.h"
#include "mount/keeper.h"
#include "mount/mount_steps.h"
#include "outer/entrance.h"

static int open_path(const char *path, int flags) {
  int fd = open(path, O_PATH | O_CLOEXEC | flags);
  if (fd < 0) fail_world("staging", path, errno);
  return fd;
}

static void make_folder(const char *path, mode_t mode) {
  if (mkdir(path, mode) < 0) fail_world("staging", path, errno);
}

/* Mount before detaching the host's: in a user namespace the kernel mounts a procfs only while a fully
   visible procfs exists in the mount namespace. */
static int place_proc(const char *path) {
  int context = filesystem_begin("proc");
  if (context < 0) fail_world("staging proc", path, errno);
  int tree = filesystem_mount(context, ATTR_NOSUID | ATTR_NODEV | ATTR_NOEXEC);
  if (tree < 0) fail_world("staging proc", path, errno);
  int target = open_path(path, O_DIRECTORY);
  if (mount_place(tree, target) < 0) fail_world("staging proc", path, errno);
  close(target);
  close(context);
  return tree;
}

static int open_host(void) {
  char path[PATH_MAX];
  int length = snprintf(path, sizeof path, "/oldroot%s", entrance_root());
  if (length >= (int)sizeof path) fail_world("staging", entrance_root(), ENAMETOOLONG);
  return open_path(path, O_DIRECTORY);
}

void mounts_stage(struct stage *stage) {
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) fail_world("mount private", "/", errno);
  if (mount("substrate", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") < 0) {
    fail_world("staging", "/tmp", errno);
  }
  make_folder("/tmp/oldroot", 0700);
  if (pivot("/tmp", "/tmp/oldroot") < 0) fail_world("pivot", "/tmp", errno);
  if (chdir("/") < 0) fail_world("pivot", "/", errno);
  make_folder("/newroot", 0755);
  make_folder("/proc", 0755);
  make_folder("/empty", 0000);
  make_folder("/masks", 0755);
  make_folder("/aside", 0700);
  int empty = open("/empty-file", O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0000);
  if (empty < 0) fail_world("staging", "/empty-file", errno);
  close(empty);
  stage->host = open_host();
  stage->empty_file = open_path("/empty-file", 0);
  stage->empty_folder = open_path("/empty", O_DIRECTORY);
  stage->masks = open_path("/masks", O_DIRECTORY);
  stage->aside = open_path("/aside", O_DIRECTORY);
  stage->proc = place_proc("/proc");
  stage->world = -1;
  /* The pivot needs a mount point, even for a plan without root or tmpfs step. */
  if (mount("substrate", "/newroot", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") < 0) {
    fail_world("staging", "/newroot", errno);
  }
}

void mounts_look_into(struct stage *stage) {
  stage->world = open_path("/newroot", O_DIRECTORY);
}

void mounts_apply(struct stage *stage, const struct setup *setup) {
  struct mount_cursor cursor = {setup->mounts, setup->mounts + setup->mounts_length};
  struct mount_step step;
  int got;
  while ((got = setup_next_mount(&cursor, &step)) > 0) {
    /* Reopen each time: a step may have mounted over the new root itself. */
    mounts_look_into(stage);
    const char *path = "";
    if (mount_step_apply(stage, &step, &path) < 0) {
      int error = errno;
      char name[64];
      snprintf(name, sizeof name, "mount %.32s", step.parts[0]);
      fail_world(name, path, error);
    }
    close(stage->world);
  }
  if (got < 0) fail_protocol("SETUP: a mount with too many parts");
}

void mounts_finish(struct stage *stage, bool keeps) {
  host_overlay_finish();
  close(stage->host);
  close(stage->empty_file);
  close(stage->empty_folder);
  close(stage->masks);
  close(stage->aside);
  if (keeps) return keeper_place();
  /* Old and new root in the same place (pivot_root(2), "pivot_root(".", ".")"): the old root is on top and is
     detached. */
  if (chdir("/newroot") < 0) fail_world("pivot", "/newroot", errno);
  if (pivot(".", ".") < 0) fail_world("pivot", "/newroot", errno);
  if (umount2(".", MNT_DETACH) < 0) fail_world("detach", "/", errno);
  if (chdir("/") < 0) fail_world("pivot", "/", errno);
}
