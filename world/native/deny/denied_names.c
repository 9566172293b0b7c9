#define _GNU_SOURCE
#include "deny/denied_names.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "deny/calls_in_progress.h"
#include "deny/closings.h"
#include "deny/denials.h"
#include "deny/folder_links.h"
#include "deny/folder_watches.h"
#include "deny/late_names.h"
#include "deny/new_repositories.h"
#include "deny/rules.h"
#include "deny/scan.h"
#include "deny/scan_roots.h"
#include "lib/clock.h"
#include "lib/commands.h"
#include "lib/credentials.h"
#include "lib/failure.h"
#include "lib/watch.h"

#define STEP "denied names"

/* A user has only 128 inotify instances. With so few folders that a scan costs less than a fork, an idle
   world frees its instance and scans when used again, as does a world that gets no instance. */
#define FEW_FOLDERS 256
#define IDLE_MS 5000

/* Watches in a sealed working tree, few enough to leave most of the user's watches to other programs. An idle
   world rescans a larger tree at most every TREE_LOOK_MS. */
#define TREE_WATCHES 2048
#define TREE_LOOK_MS 30000

static int events = -1; /* -1: no inotify instance */
static bool started;
static bool pins_all; /* over an overlay too */
static bool (*no_strays)(void); /* true when every process belongs to a command */
static const struct scan_root *current; /* the root under scan */
static size_t folders;             /* folders entered by the last full scan */
static size_t unwatched;
static size_t unwatched_repositories; /* the known git folders among `unwatched` */
static size_t tree_folders; /* folders entered by the last scan for seals alone */
static int64_t tree_looked; /* ms of CLOCK_MONOTONIC */
static bool gapless; /* every folder of interest has been watched since the last full scan */
static int64_t used; /* ms of CLOCK_MONOTONIC */

size_t names_unwatched(void) {
  return unwatched;
}

bool names_guarded(void) {
  return started && scan_roots_any(SCAN_WATCH);
}

bool names_nobody_runs(void) {
  for (const struct command *command = command_after(NULL); command != NULL; command = command_after(command)) {
    /* After the reported end of a command, at most the rest of its output may be pending. */
    if (!command->exit_sent || command->leader != NULL) return false;
  }
  return no_strays();
}

/* True when a new name is certainly not a command's work; also for the replacement of a known name, because
   commands cannot replace a mount point. */
static bool is_persons(bool known) {
  return known || names_nobody_runs() || (gapless && !calls_may_be_in_progress());
}

/* True when another sealed name stood in the same folder before: the folder of a worktree or submodule, or a
   git folder outside the project, which are not known themselves. */
static bool is_beside_seal(const char *path) {
  char beside[PATH_MAX];
  const char *leaf = strrchr(path, '/') + 1, *name;
  uint16_t at = 0;
  while ((name = rules_next_end(DENY_SEAL, &at)) != NULL) {
    if (strcmp(name, leaf) == 0) continue;
    int length = snprintf(beside, sizeof beside, "%.*s%s", (int)(leaf - path), path, name);
    if (length < (int)sizeof beside && denial_known(beside) && denial_holds(beside)) return true;
  }
  return false;
}

/* True directly in a pre-existing git folder: existing names are sealed, missing names closed to commands. Of a git
   folder that a command may have made (`or_made`) the rest is judged whole when this world's command ends; new names
   of others there are sealed singly. */
static bool in_known_repository(const char *path, bool or_made) {
  char folder[PATH_MAX];
  snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
  return denial_known(folder) || (is_beside_seal(path) && (or_made || !new_repository_waits(folder)));
}

/* True when commands may not write the path, and its leaf can end a rule of `leaf_kinds`: a cheap filter. */
static bool is_denied(const char *path, unsigned leaf_kinds) {
  unsigned denied;
  if (!names_guarded() || strlen(path) >= PATH_MAX || !rules_may_end(leaf_kinds, strrchr(path, '/') + 1)) return false;
  (void)rule_states_at(path, DENY_SEAL | DENY_WRITE, &denied);
  return (denied & (DENY_SEAL | DENY_WRITE)) != 0;
}

bool names_hold(const char *path) {
  if (!is_denied(path, DENY_SEAL | DENY_WRITE)) return false;
  return denial_known(path) || (is_denied(path, DENY_SEAL) && in_known_repository(path, true));
}

bool names_refuse(const char *path) {
  if (!names_guarded() || strlen(path) >= PATH_MAX) return false;
  if (is_denied(path, DENY_SEAL) && in_known_repository(path, true)) return true;
  /* A git folder recreated after an unnoticed removal is a new folder. */
  denial_forget(path);
  return false;
}

bool names_ask_about_missing(const char *path) {
  unsigned denied;
  if (!names_guarded() || strlen(path) >= PATH_MAX || !rules_may_end(DENY_ASKS, strrchr(path, '/') + 1)) return false;
  (void)rule_states_at(path, DENY_IN_ROOTS, &denied);
  return (denied & DENY_ASKS) != 0 && (denied & ~DENY_OF_SEALS) == 0 && in_known_repository(path, true);
}

/* Adds the folder of a worktree or submodule, in any repository. Seals outside git folders are ignored. */
static void add_folder_of(const char *path) {
  char folder[PATH_MAX];
  if (strstr(path, ".git/") == NULL) return;
  snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
  if (!denial_known(folder)) new_repository_add(folder);
}

/* Git replaces its settings several times while making a repository: a vanished file has a successor. */
#define SEAL_TRIES 3

/* Seals a person's name against commands. A closed git folder that now has its settings is reopened. */
static void seal_persons(const char *path, unsigned denies, bool pins) {
  char folder[PATH_MAX];
  bool sealed = false;
  for (int tried = 0; !sealed && tried < SEAL_TRIES; tried++) sealed = denial_apply(current->path, path, denies, pins);
  if (!sealed || (denies & DENY_ASKS) == 0) return;
  snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
  closing_end(folder);
}

/* Handles a name found after the first scan. A person's name is masked in place and never moved. A name that
   a command may have made is quarantined: when the command ends; at once when only leftovers of commands run,
   or inside a person's git folder, where git may run at any moment. Until then the name is unreadable but not
   pinned, so that tools creating whole folders can still move them. */
static bool on_late(const char *path, unsigned denies) {
  bool known = denial_known(path);
  bool active = late_commands_run();
  unsigned refuses = denies & ~DENY_ASKS;
  if (denial_holds(path)) {
    if (!known && denial_adopt(path)) return false;
    /* A name to be quarantined never gets a seal. */
    if (!known && (refuses & ~DENY_SEAL) == 0) {
      denial_remember(path);
      return false;
    }
    /* Reported under another path, and moved before its quarantine. */
    if (!known && active) late_name_add(path, refuses);
    else if (!known) late_name_tell(path, refuses);
    return false;
  }
  if (is_persons(known)) {
    seal_persons(path, denies, true);
    return (denies & DENY_READ) == 0;
  }
  if ((refuses & ~DENY_SEAL) == 0 && closing_covers(path)) {
    seal_persons(path, denies, true);
    late_name_tell(path, refuses | DENY_JUDGED);
    return true;
  }
  if ((refuses & ~DENY_SEAL) == 0 && !in_known_repository(path, false)) {
    add_folder_of(path);
    return true;
  }
  /* Inside a known git folder no tool creates such a name as an intermediate step. */
  bool waits = active && !in_known_repository(path, false);
  if (waits && !late_name_add(path, refuses)) return false;
  if ((denies & DENY_READ) != 0) denial_apply(current->path, path, denies, false);
  if (!waits) late_name_tell(path, refuses);
  return false;
}

static bool on_found(const char *path, unsigned denies) {
  if ((denies & DENY_REPOSITORY) != 0) {
    denies &= ~DENY_REPOSITORY;
    bool persons = !started || is_persons(false);
    /* Also during the first scan: somebody may create a repository while the world begins. */
    bool closes = started || (current->kind == SCAN_WATCH && closing_is_recent(path));
    if (persons && closes && !denial_known(path)) closing_begin(current->path, path);
    if (persons) denial_remember(path);
    else if (!denial_known(path)) new_repository_add(path);
    if (denies == 0) return true;
  }
  if (started) return on_late(path, denies);
  bool pins = current->kind == SCAN_WATCH || (pins_all && (denies & DENY_READ) != 0);
  seal_persons(path, denies, pins);
  return (denies & DENY_READ) == 0;
}

/* A link instead of a denied folder would give its target denied names, and later writes go unnoticed. */
static void on_link(const char *path, unsigned denies) {
  if ((denies & DENY_WRITE) == 0 || !folder_link_is_new(path)) return;
  denies = DENY_WRITE | DENY_FOLDER_LINK;
  if (!started || is_persons(false)) folder_link_remember(path);
  else if (!late_commands_run()) late_name_tell(path, denies);
  else late_name_add(path, denies);
}

static bool on_enter(int folder, const char *path, const struct rule_states *states) {
  bool tree = (states->denies & ~DENY_OF_SEALS) == 0;
  if (tree) tree_folders++;
  else folders++;
  /* Always watch known git folders, however many others: commands may not create missing names there. */
  bool repository = tree && denial_known(path);
  if (current->kind == SCAN_ONCE || events < 0 || (tree && !repository && tree_folders > TREE_WATCHES)) return true;
  int error = folder_watch(events, folder, path, states);
  if (error == ENOSPC) {
    unwatched += tree && !repository ? 0 : 1;
    unwatched_repositories += repository ? 1 : 0;
    gapless = false;
  } else if (error != 0 && error != ENOENT) fail_world(STEP, path, error);
  return true;
}

static void scan_one(const char *path, const struct rule_states *states) {
  int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) fail_world(STEP, "/", errno);
  const struct scan scan = {.root = root, .enter = on_enter, .found = on_found, .link = on_link};
  scan_below(&scan, path, states);
  close(root);
}

/* Denies the root's own folder if a rule says so. False: no readable folder is left to scan. */
static bool deny_root(unsigned denied) {
  if (denied != 0 && !started) denial_apply(current->path, current->path, denied, false);
  return (denied & DENY_READ) == 0;
}

static unsigned kinds_to_look_for(bool lost) {
  int64_t now = now_ms();
  if (started && !lost && unwatched_repositories == 0 && tree_folders > FEW_FOLDERS && now - tree_looked < TREE_LOOK_MS)
    return DENY_IN_ROOTS & ~DENY_OF_SEALS;
  tree_looked = now;
  tree_folders = unwatched_repositories = 0;
  return DENY_IN_ROOTS;
}

/* Scans all roots. A name found only by the scan may be old, and its maker is unknown. */
static void scan_all(bool lost) {
  unsigned denied, kinds = kinds_to_look_for(lost);
  folders = unwatched = 0;
  gapless = false;
  for (current = scan_roots_first(); current != NULL; current = current->next) {
    if (current->kind == SCAN_SKIP) continue;
    const struct rule_states *states = scan_root_states(current, kinds, &denied);
    if (deny_root(denied) && states != NULL) scan_one(current->path, states);
  }
  gapless = events >= 0 && unwatched == 0;
}

/* Creates an inotify instance; false at the limit. Many folders are then reported as unwatched. */
static bool begin_watching(void) {
  events = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (events < 0 && errno != EMFILE && errno != ENFILE) fail_world(STEP, "inotify", errno);
  return events >= 0;
}

void names_start(bool (*settled)(void), bool pins) {
  no_strays = settled;
  pins_all = pins;
  if (rules_begin(DENY_IN_ROOTS) == NULL) return;
  denials_open();
  bool watched = !scan_roots_any(SCAN_WATCH) || begin_watching();
  scan_all(true);
  if (!watched && folders > FEW_FOLDERS) unwatched = folders;
  started = true;
}

void names_listen(void) {
  used = now_ms();
  if (events >= 0) watch_add(events, EPOLLIN, SOURCE_NAMES, 0);
}

int names_check_idle(void) {
  if (events < 0 || folders + tree_folders > FEW_FOLDERS || command_after(NULL) != NULL) return -1;
  int64_t left = used + IDLE_MS - now_ms();
  if (left > 0) return (int)left;
  folders_forget();
  close(events);
  events = -1;
  gapless = false;
  return -1;
}

static void on_appeared(const struct watched *folder, const char *name, bool is_folder) {
  char path[PATH_MAX];
  unsigned matched, through = 0;
  const struct rule_states *further = NULL;
  if (is_folder) further = rules_step(folder->states, name, &matched);
  else {
    matched = rules_match(folder->states, name);
    through = rules_through(folder->states, name);
  }
  if (matched == 0 && further == NULL && through == 0) return;
  if (snprintf(path, sizeof path, "%s/%s", folder->path, name) >= (int)sizeof path) return;
  current = scan_root_of(path);
  if (current == NULL) return;
  if (through != 0) on_link(path, through);
  if (matched != 0 && !on_found(path, matched)) return;
  /* The folder may have been filled before its watch began, or moved here with its contents. */
  if (further != NULL) scan_one(path, further);
}

/* An exchange of two files on the host arrives as both events; what the broker makes, first as gone from where it was made. */
static void forget_gone(const char *path) {
  if (denial_known(path) && !denial_holds(path) && !denial_expected(path)) denial_forget(path);
}

static void on_disappeared(const struct watched *folder, const char *name) {
  char path[PATH_MAX];
  if (snprintf(path, sizeof path, "%s/%s", folder->path, name) < (int)sizeof path) forget_gone(path);
}

/* Handles the removal of a known git folder in an unwatched folder. */
static void on_ignored(const struct watched *folder) {
  forget_gone(folder->path);
  folder_forget(folder->descriptor);
}

/* Handles an event; true when events were lost. */
static bool take_event(const struct inotify_event *event) {
  if ((event->mask & IN_Q_OVERFLOW) != 0) return true;
  const struct watched *folder = folder_find(event->wd);
  if (folder == NULL) return false;
  if ((event->mask & IN_IGNORED) != 0) on_ignored(folder);
  else if ((event->mask & (IN_CREATE | IN_MOVED_TO)) != 0)
    on_appeared(folder, event->name, (event->mask & IN_ISDIR) != 0);
  else if ((event->mask & (IN_DELETE | IN_MOVED_FROM)) != 0) on_disappeared(folder, event->name);
  return false;
}

/* Handles all events; true when events were lost. */
static bool take_events(void) {
  bool lost = false;
  while (folder_events_wait(events)) lost |= take_event(folder_event());
  return lost;
}

static void look(bool everywhere) {
  if (events < 0 || (!folder_events_wait(events) && !everywhere)) return;
  credentials_raise();
  bool lost = take_events();
  if (lost || everywhere) scan_all(lost);
  credentials_lower();
}

void names_hear(void) {
  calls_mark_over();
  look(false);
  calls_drop_over();
}

void names_hear_before(pid_t task) {
  look(false);
  calls_begin(task);
}

int64_t names_next_look_us(void) {
  if (calls_next_look_us() == 0) names_hear();
  return calls_next_look_us();
}

/* Scans everything, and keeps a new inotify instance if the user's limit allows. */
static void look_again(void) {
  credentials_raise();
  if (begin_watching()) names_listen();
  scan_all(false);
  credentials_lower();
}

void names_look(void) {
  used = now_ms();
  calls_mark_over();
  if (events >= 0) look(unwatched > 0 || late_names_alone());
  else if (names_guarded()) look_again();
  if (names_nobody_runs()) calls_forget();
  else calls_drop_over();
}

void names_settle(void) {
  names_look();
  late_names_tell();
}
