#define _GNU_SOURCE
#include "mount/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/failure.h"
#include "lib/mount_api.h"

#define STEP "keeper"
#define WORLD "/newroot"
#define PLACE "/keeper"

/* The copy shares its mounts' groups with the world's: what is mounted on the one is mounted on the other
   (mount_namespaces(7), "shared subtrees"). */
static void copy_world(void) {
  if (mount(NULL, WORLD, NULL, MS_REC | MS_SHARED, NULL) < 0) fail_world(STEP, "share", errno);
  int world = open(WORLD, O_PATH | O_DIRECTORY | O_CLOEXEC);
  int copy = world < 0 ? -1 : mount_twin(world);
  if (copy < 0) fail_world(STEP, WORLD, errno);
  if (mkdir(PLACE, 0700) < 0) fail_world(STEP, PLACE, errno);
  int place = open(PLACE, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (place < 0 || mount_place(copy, place) < 0) fail_world(STEP, PLACE, errno);
  close(world);
  close(copy);
  close(place);
}

void keeper_place(void) {
  /* The host must be gone before the staging root stays. */
  if (umount2("/oldroot", MNT_DETACH) < 0) fail_world("detach", "/oldroot", errno);
  copy_world();
  if (chdir(WORLD) < 0) fail_world(STEP, WORLD, errno);
  /* Over the staging root, like switch_root(8): the world's root is the topmost mount of the namespace's root, so
     that the kernel lets its processes make user namespaces (current_chrooted). */
  if (mount(WORLD, "/", NULL, MS_MOVE, NULL) < 0) fail_world(STEP, "move", errno);
  if (chroot(".") < 0) fail_world(STEP, "chroot", errno);
  if (chdir("/") < 0) fail_world(STEP, "/", errno);
}
