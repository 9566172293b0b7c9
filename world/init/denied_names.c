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
#include <unistd.h>

#include "channel.h"
#include "commands.h"
#include "credentials.h"
#include "denials.h"
#include "failure.h"
#include "fields.h"
#include "folder_watches.h"
#include "frames.h"
#include "rules.h"
#include "scan.h"
#include "watch.h"
#include "zones.h"

#define STEP "denied names"

static int events = -1;
static bool started;
static const struct zone *current; /* the zone that is being looked through */
static size_t unwatched;

size_t names_unwatched(void) {
  return unwatched;
}

bool names_watches(void) {
  return events >= 0;
}

/* The broker takes it out again; it knows the host's side of the path. */
static void tell(const char *path, unsigned denies) {
  uint8_t payload[2 * FIELD_HEADER_SIZE + 8 + PATH_MAX];
  struct field_writer writer = {.data = payload, .capacity = sizeof payload};
  field_put_string(&writer, TAG_PATH, path);
  field_put_u64(&writer, TAG_DENIES, denies);
  channel_send(FRAME_APPEARED, 0, payload, writer.length);
}

/* A name that a command may have made is taken out. What was there before a command began, or was known
   and replaced (nobody inside can: it is a mount point), is the person's, and is denied where it is. */
static bool on_found(const char *path, unsigned denies) {
  if (started && denial_holds(path)) return false;
  if (started && !denial_known(path) && command_after(NULL) != NULL) {
    tell(path, denies);
    return false;
  }
  denial_apply(current->path, path, denies, current->kind == ZONE_WATCH);
  return (denies & DENY_READ) == 0;
}

static bool on_enter(int folder, const char *path, const struct places *places) {
  if (current->kind == ZONE_ONCE) return true;
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

static void scan_zones(void) {
  for (current = zones_first(); current != NULL; current = current->next) {
    if (current->kind == ZONE_SKIP) continue;
    const struct places *places = zone_places(current, DENY_READ | DENY_WRITE);
    if (places != NULL) scan_zone(current->path, places);
  }
}

void names_start(void) {
  if (rules_begin(DENY_READ | DENY_WRITE) == NULL) return;
  denials_open();
  if (zones_any(ZONE_WATCH)) {
    events = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (events < 0) fail_world(STEP, "inotify", errno);
  }
  scan_zones();
  started = true;
}

void names_listen(void) {
  if (events >= 0) watch_add(events, EPOLLIN, SOURCE_NAMES, 0);
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

void names_look(void) {
  static _Alignas(struct inotify_event) char buffer[16384];
  bool lost = false, raised = false;
  ssize_t length;
  if (events < 0) return;
  while ((length = read(events, buffer, sizeof buffer)) > 0) {
    if (!raised) credentials_raise();
    raised = true;
    for (ssize_t at = 0; at < length;) {
      const struct inotify_event *event = (const void *)(buffer + at);
      lost |= take_event(event);
      at += (ssize_t)(sizeof *event + event->len);
    }
  }
  if (length < 0 && errno != EAGAIN && errno != EINTR) fail_world(STEP, "inotify", errno);
  if (lost) scan_zones();
  if (raised) credentials_lower();
}
