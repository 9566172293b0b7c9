#define _GNU_SOURCE
#include "mount/dentries.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "lib/credentials.h"
#include "lib/failure.h"
#include "lib/mount_api.h"

#define STEP "veil names"
#define OVERLAY_MAGIC 0x794c7630
#define OVERLAYS_MAX 512
/* Contexts waiting to be closed: this many per overlay, and at most this fraction of all descriptors. */
#define WAITING_EACH 2
#define WAITING_PART 32
/* Contexts closed per turn: some 10 us of work each, and up to 40 us until done. */
#define CLOSED_AT_ONCE 4

static int overlays[OVERLAYS_MAX];
static size_t count, kept;
static size_t unwatched; /* beyond OVERLAYS_MAX: names stay as first looked up */
static int waiting[OVERLAYS_MAX * WAITING_EACH];
static size_t waiting_count, waiting_most = 1;
/* A command may have looked up names since the last refresh. */
static bool stale = true;

int dentries_watch(int tree) {
  struct statfs status;
  /* A refresh reconfigures a whole file system: accept only the world's own overlays. */
  if (fstatfs(tree, &status) < 0) return -1;
  if (status.f_type != OVERLAY_MAGIC) {
    errno = EINVAL;
    return -1;
  }
  if (count == OVERLAYS_MAX) {
    unwatched++;
    return 0;
  }
  int overlay = fcntl(tree, F_DUPFD_CLOEXEC, 0);
  if (overlay < 0) return -1;
  overlays[count++] = overlay;
  return 0;
}

void dentries_unwatch(dev_t device) {
  struct stat status;
  for (size_t i = 0; i < count; i++) {
    if (fstat(overlays[i], &status) < 0 || status.st_dev != device) continue;
    close(overlays[i]);
    overlays[i] = overlays[--count];
    return;
  }
}

void dentries_let_go(void) {
  while (count > 0) close(overlays[--count]);
}

bool dentries_any(void) {
  return count > 0;
}

uint64_t dentries_fit(uint64_t descriptors) {
  uint64_t wanted = count * WAITING_EACH, fitting = descriptors / WAITING_PART;
  waiting_most = wanted < fitting ? wanted : fitting;
  if (waiting_most == 0) waiting_most = 1;
  return count + waiting_most;
}

size_t dentries_kept(void) {
  return kept;
}

static void close_one(void) {
  close(waiting[--waiting_count]);
}

/* Opens a context; when descriptors run out, closes the waiting contexts first. */
static int pick(int overlay) {
  int context = filesystem_pick(overlay);
  if (context >= 0 || errno != EMFILE || waiting_count == 0) return context;
  while (waiting_count > 0) close_one();
  return filesystem_pick(overlay);
}

/* Drops an overlay's cached names: reconfiguring a file system drops its unused names (fs/super.c,
   reconfigure_super) before the overlay itself is asked, which has nothing to change. An overlay without an
   upper layer then fails with EROFS, since the request does not ask to keep read-only. Closing the context
   waits for an RCU grace period, ten times as long as the rest: close later. */
static bool forget(int overlay) {
  int context = pick(overlay);
  if (context < 0) return false;
  bool done = filesystem_reconfigure(context) == 0 || errno == EROFS;
  int error = errno;
  if (waiting_count >= waiting_most) close_one();
  waiting[waiting_count++] = context;
  errno = error;
  return done;
}

void dentries_start(void) {
  size_t working = 0;
  for (size_t i = 0; i < count; i++) {
    if (forget(overlays[i])) overlays[working++] = overlays[i];
    else close(overlays[i]);
  }
  while (waiting_count > 0) close_one();
  kept = count - working + unwatched;
  count = working;
}

static void forget_all(void) {
  credentials_raise();
  for (size_t i = 0; i < count; i++) {
    if (!forget(overlays[i])) fail_world(STEP, "", errno);
  }
  credentials_lower();
}

void dentries_forget(void) {
  if (stale) forget_all();
  stale = true;
}

int dentries_rest(bool somebody_runs) {
  if (count == 0) return -1;
  if (stale && !somebody_runs) {
    forget_all();
    stale = false;
  } else {
    /* Few at a time: a command arriving meanwhile goes first. */
    for (int i = 0; i < CLOSED_AT_ONCE && waiting_count > 0; i++) close_one();
  }
  return waiting_count > 0 ? 0 : -1;
}
