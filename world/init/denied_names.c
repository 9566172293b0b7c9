#define _GNU_SOURCE
#include "denied_names.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "children.h"
#include "commands.h"
#include "credentials.h"
#include "denials.h"
#include "failure.h"
#include "folder_watches.h"
#include "late_names.h"
#include "rules.h"
#include "scan.h"
#include "watch.h"
#include "zones.h"

#define STEP "denied names"

/* A user may have 128 instances of inotify for everything he runs, and each world wants one. Where so few folders are
   of interest that looking costs less than a fork, an idle world gives its own back and looks when it is used again;
   and so does one that gets none. */
#define FEW_FOLDERS 256
#define IDLE_MS 5000

static int events = -1; /* -1: nothing is watched */
static bool started;
static const struct zone *current; /* the zone that is being looked through */
static size_t folders;             /* that the last look at everything went into */
static size_t unwatched;
static int64_t used; /* ms of CLOCK_MONOTONIC */
/* Events that were read and not taken yet: who fails the world in the middle of them looks once more. */
static _Alignas(struct inotify_event) char buffer[16384];
static ssize_t filled, taken;

size_t names_unwatched(void) {
  return unwatched;
}

bool names_guarded(void) {
  return started && zones_any(ZONE_WATCH);
}

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Whether anybody inside may have done what is seen now. */
static bool somebody_runs(void) {
  return command_after(NULL) != NULL || !children_settled();
}

/* What turned up after the first look. A name that was known and replaced is the person's, since nobody inside can
   replace it: it is a mount point. So is one that turns up while no command runs. A name that a command may have
   made is taken out: when the command ends, or at once when only what it left behind is running. Until then it
   cannot be read; it is not pinned, so that what makes whole folders can still move them. */
static bool on_late(const char *path, unsigned denies) {
  bool known = denial_known(path);
  bool active = late_commands_run();
  if (denial_holds(path)) {
    if (!known && active) late_name_add(path, denies);
    return false;
  }
  if (known || !somebody_runs()) {
    denial_apply(current->path, path, denies, true);
    return (denies & DENY_READ) == 0;
  }
  if ((denies & ~DENY_SEAL) == 0) return true;
  if (!active && (denies & DENY_READ) == 0) late_name_tell(path, denies);
  if (active && !late_name_add(path, denies)) return false;
  if ((denies & DENY_READ) != 0) denial_apply(current->path, path, denies, false);
  return false;
}

static bool on_found(const char *path, unsigned denies) {
  if (started) return on_late(path, denies);
  denial_apply(current->path, path, denies, current->kind == ZONE_WATCH);
  return (denies & DENY_READ) == 0;
}

static bool on_enter(int folder, const char *path, const struct places *places) {
  folders++;
  if (current->kind == ZONE_ONCE || events < 0) return true;
  int error = folder_watch(events, folder, path, places);
  if (error == ENOSPC) unwatched++;
  else if (error != 0 && error != ENOENT) fail_world(STEP, path, error);
  return true;
}

static void scan_zone(const char *path, const struct places *places) {
  int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) fail_world(STEP, "/", errno);
  const struct scan scan = {.root = root, .enter = on_enter, .found = on_found};
  scan_below(&scan, path, places);
  close(root);
}

/* The zone's own folder may be denied, or all that it lies in. False: nothing below it is there to be looked at. */
static bool deny_zone(unsigned denied) {
  if (denied != 0 && !started) denial_apply(current->path, current->path, denied, false);
  return (denied & DENY_READ) == 0;
}

static void scan_zones(void) {
  unsigned denied;
  folders = unwatched = 0;
  for (current = zones_first(); current != NULL; current = current->next) {
    if (current->kind == ZONE_SKIP) continue;
    const struct places *places = zone_places(current, DENY_IN_ZONES, &denied);
    if (deny_zone(denied) && places != NULL) scan_zone(current->path, places);
  }
}

/* True when there is an instance. Without one, many folders cannot be kept in view, and the world says so. */
static bool begin_watching(void) {
  events = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (events < 0 && errno != EMFILE && errno != ENFILE) fail_world(STEP, "inotify", errno);
  return events >= 0;
}

void names_start(void) {
  if (rules_begin(DENY_IN_ZONES) == NULL) return;
  denials_open();
  bool watched = !zones_any(ZONE_WATCH) || begin_watching();
  scan_zones();
  if (!watched && folders > FEW_FOLDERS) unwatched = folders;
  started = true;
}

void names_listen(void) {
  used = now_ms();
  if (events >= 0) watch_add(events, EPOLLIN, SOURCE_NAMES, 0);
}

int names_check_idle(void) {
  if (events < 0 || folders > FEW_FOLDERS || command_after(NULL) != NULL) return -1;
  int64_t left = used + IDLE_MS - now_ms();
  if (left > 0) return (int)left;
  folders_forget();
  close(events);
  events = -1;
  return -1;
}

static void on_appeared(const struct watched *folder, const char *name, bool is_folder) {
  char path[PATH_MAX];
  unsigned matched;
  const struct places *further = NULL;
  if (is_folder) further = rules_step(folder->places, name, &matched);
  else matched = rules_match(folder->places, name);
  if (matched == 0 && further == NULL) return;
  if (snprintf(path, sizeof path, "%s/%s", folder->path, name) >= (int)sizeof path) return;
  current = zone_of(path);
  if (current == NULL) return;
  if (matched != 0 && !on_found(path, matched)) return;
  /* The folder may have been filled before it was watched, or moved here with all that is in it. */
  if (further != NULL) scan_zone(path, further);
}

static void on_disappeared(const struct watched *folder, const char *name) {
  char path[PATH_MAX];
  if (snprintf(path, sizeof path, "%s/%s", folder->path, name) < (int)sizeof path) denial_forget(path);
}

/* True when events were lost. */
static bool take_event(const struct inotify_event *event) {
  if ((event->mask & IN_Q_OVERFLOW) != 0) return true;
  const struct watched *folder = folder_find(event->wd);
  if (folder == NULL) return false;
  if ((event->mask & IN_IGNORED) != 0) folder_forget(event->wd);
  else if ((event->mask & (IN_CREATE | IN_MOVED_TO)) != 0)
    on_appeared(folder, event->name, (event->mask & IN_ISDIR) != 0);
  else if ((event->mask & (IN_DELETE | IN_MOVED_FROM)) != 0) on_disappeared(folder, event->name);
  return false;
}

/* Whether there is an event to take. */
static bool more(void) {
  if (taken < filled) return true;
  taken = 0;
  filled = read(events, buffer, sizeof buffer);
  if (filled < 0 && errno != EAGAIN && errno != EINTR) fail_world(STEP, "inotify", errno);
  return filled > 0;
}

/* True when events were lost. */
static bool take_events(void) {
  bool lost = false;
  while (more()) {
    const struct inotify_event *event = (const void *)(buffer + taken);
    taken += (ssize_t)(sizeof *event + event->len);
    lost |= take_event(event);
  }
  return lost;
}

static void look(bool everywhere) {
  if (events < 0 || (!more() && !everywhere)) return;
  credentials_raise();
  if (take_events() || everywhere) scan_zones();
  credentials_lower();
}

void names_hear(void) {
  look(false);
}

/* Everything is looked at anew, once with an instance to listen to from then on, or each time without. */
static void look_again(void) {
  credentials_raise();
  if (begin_watching()) names_listen();
  scan_zones();
  credentials_lower();
}

void names_look(void) {
  used = now_ms();
  if (events >= 0) look(unwatched > 0);
  else if (names_guarded()) look_again();
}

void names_settle(void) {
  names_look();
  late_names_tell();
}
