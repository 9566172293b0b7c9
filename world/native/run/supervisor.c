#define _GNU_SOURCE
#include "run/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "deny/calls_in_progress.h"
#include "deny/closings.h"
#include "deny/denials.h"
#include "deny/denied_names.h"
#include "deny/host_names.h"
#include "lib/callers.h"
#include "lib/channel.h"
#include "lib/commands.h"
#include "lib/credentials.h"
#include "lib/failure.h"
#include "lib/fields.h"
#include "lib/frames.h"
#include "lib/watch.h"
#include "mount/dentries.h"
#include "mount/filesystems.h"
#include "mount/kept_writes.h"
#include "mount/mounts.h"
#include "mount/spines.h"
#include "notify/connects/dial_calls.h"
#include "notify/connects/dials.h"
#include "notify/connects/listens.h"
#include "notify/connects/own_sockets.h"
#include "notify/listener.h"
#include "notify/namespace_calls.h"
#include "notify/notices.h"
#include "notify/starts/lineage.h"
#include "notify/starts/pending.h"
#include "notify/starts/pidfds.h"
#include "notify/starts/starts.h"
#include "notify/writes/lookups.h"
#include "notify/writes/record.h"
#include "outer/namespaces.h"
#include "run/children.h"
#include "run/endings.h"
#include "run/group.h"
#include "run/input.h"
#include "run/last_look.h"
#include "run/outputs.h"
#include "run/requests.h"
#include "seals/removals.h"
#include "seals/replacements.h"
#include "seccomp/guard.h"
#include "telemetry/telemetry.h"

/* "pid_max=" and a number of 64 bits. */
#define LIMIT_MAX 32
/* Delay until the next check for a dying stray. */
#define STRAYS_RETRY_MS 20

/* Takes earlier changes of denied names, so that none counts as the work of this call. */
static bool hear_names(int listener, const struct seccomp_notif *notice, struct command *command) {
  (void)listener, (void)command;
  names_hear_before((pid_t)notice->pid);
  return false;
}

/* Starts, connects and refused namespaces create no name, so denied names need no check first. */
static const struct notice_service SERVICES[] = {{start_serve, true},
                                                 {dial_serve, true},
                                                 {listen_serve, true},
                                                 {namespace_call_serve, false},
                                                 {hear_names, false},
                                                 {replacement_serve, false},
                                                 {record_serve, true},
                                                 {NULL, false}};

/* Drop the calls that wait at a listener. */
static void (*const FORGETS[])(int listener) = {pending_forget, dials_forget, replacements_forget, NULL};

static const struct leader_events LEADER_EVENTS = {.report = ending_receive, .orphaned = ending_orphaned};

static int signal_fd;
static bool waiting; /* an EXEC waits for a leader */
static bool deaf;    /* channel reads are suspended: the buffer is full, and its first frame must wait */
static uint32_t heard; /* current epoll events of the channel */

/* Ties the world's life to its outer process, which may be gone already. */
static void follow_outer(int alive) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) fail_world("pdeathsig", "", errno);
  struct pollfd state = {.fd = alive, .events = POLLIN};
  if (poll(&state, 1, 0) != 0) _exit(1);
  close(alive);
}

/* Returns PID 1's pid on the host, from the host's procfs; 0 when unreadable. */
static uint64_t host_pid(const struct stage *stage) {
  char text[32] = "";
  ssize_t length = readlinkat(stage->host, "proc/self", text, sizeof text - 1);
  return length > 0 ? strtoull(text, NULL, 10) : 0;
}

static void open_signals(void) {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  signal_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signal_fd < 0) fail_world("signalfd", "", errno);
}

/* Raises PID 1's limit, since each command takes descriptors. Commands keep the old limit, inherited through
   the forker. */
static void raise_descriptor_limit(bool reports) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) < 0) fail_world("rlimit", "", errno);
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) < 0) fail_world("rlimit", "", errno);
  uint64_t taken = pidfds_fit(limit.rlim_cur) + dentries_fit(limit.rlim_cur) + dials_fit(limit.rlim_cur) + denials_descriptors() +
                   kept_writes_descriptors();
  commands_fit(limit.rlim_cur > taken ? limit.rlim_cur - taken : 0, groups_descriptors() + (reports ? 1 : 0));
}

static void send_ready(const struct setup *setup, uint64_t pid, uint64_t pid_max) {
  char text[LIMIT_MAX];
  uint8_t payload[6 * (FIELD_HEADER_SIZE + 8) + FIELD_HEADER_SIZE + LIMIT_MAX];
  struct field_writer writer = {.data = payload, .capacity = sizeof payload};
  field_put_u64(&writer, TAG_NAMESPACES, setup->namespaces);
  field_put_u64(&writer, TAG_PID, pid);
  field_put_u64(&writer, TAG_DENIED, denials_count());
  field_put_u64(&writer, TAG_UNWATCHED, names_unwatched());
  field_put_u64(&writer, TAG_UNREFRESHED, dentries_kept());
  if (children_gated()) field_put_u64(&writer, TAG_GATED, 1);
  int length = snprintf(text, sizeof text, "pid_max=%llu", (unsigned long long)pid_max);
  if (pid_max != 0) field_put(&writer, TAG_LIMIT, text, (size_t)length);
  channel_send(FRAME_READY, 0, payload, writer.length);
}

/* Does all work that is needed once per world. Returns the procfs that only PID 1 and the leaders reach. */
static int build(const struct setup *setup, int null) {
  struct stage stage;
  sigset_t all;
  sigfillset(&all);
  if (sigprocmask(SIG_SETMASK, &all, NULL) < 0) fail_world("signal mask", "", errno);
  /* Leave the broker's session: a Ctrl-C at the broker's terminal must not reach the world. */
  if (setsid() < 0) fail_world("setsid", "", errno);
  umask(0);
  notices_open(SERVICES, children_owner);
  listeners_open(FORGETS);
  record_open(removal_serve);
  mounts_stage(&stage);
  namespaces_prepare(setup, stage.proc);
  uint64_t pid_max = limits_set_pid_max(stage.proc, &setup->limits);
  names_hide(&stage);
  mounts_apply(&stage, setup);
  mounts_look_into(&stage);
  names_mask_hidden(&stage);
  close(stage.world);
  uint64_t pid = host_pid(&stage);
  mounts_finish(&stage, setup->nested == NESTED_MOUNTS);
  /* The plan was parsed in place; the frame's buffer is free from here on. */
  channel_release();
  if (faccessat(stage.proc, "1/task/1/children", R_OK, 0) < 0) fail_world("procfs", "children", errno);
  children_start(stage.proc, null, &LEADER_EVENTS);
  /* After the forker's start, so that the forker has no copy of the guard's descriptors. */
  names_start(children_settled, setup->nested == NESTED_MOUNTS);
  /* Their mode 0 would fail each `find /dev` of a command. The doctor's trial worlds have none. */
  if (folder_cover(MASKS) < 0 && errno != ENOENT) fail_world("masks", MASKS, errno);
  dentries_start();
  spines_start();
  kept_writes_start();
  credentials_drop_but_supervise(names_guarded() || dentries_any() || spines_any());
  groups_open(&setup->limits);
  callers_may_nest = setup->nested != 0;
  lookups_open(stage.proc, setup->project);
  own_sockets_open(setup->host_network == 1);
  dial_calls_open();
  raise_descriptor_limit(setup->reports == 1);
  close(null);
  open_signals();
  watch_open();
  heard = EPOLLIN | EPOLLRDHUP;
  watch_add(CHANNEL_FD, heard, SOURCE_CHANNEL, 0);
  watch_add(signal_fd, EPOLLIN, SOURCE_CHILDREN, 0);
  listener_watch();
  children_watch();
  /* With a guard (log mode) mounts and more calls are allowed, so names can appear without a notification. */
  calls_open(stage.proc, names_guarded() && setup->project != NULL && children_gated() && !guard_kept());
  names_listen();
  last_look_arm();
  send_ready(setup, pid, pid_max);
  channel_be_patient(true);
  return stage.proc;
}

static void serve(int proc) {
  waiting = !requests_serve(proc);
  deaf = false;
}

/* Updates the epoll events of the channel after each change. */
static void watch_channel(void) {
  uint32_t events = (deaf ? 0 : EPOLLIN | EPOLLRDHUP) | (channel_has_backlog() ? EPOLLOUT : 0);
  if (events != heard) watch_change(CHANNEL_FD, events, SOURCE_CHANNEL, 0);
  heard = events;
}

static void on_channel(int proc, uint32_t events) {
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) channel_lost();
  if ((events & EPOLLOUT) != 0) channel_send_backlog();
  if ((events & (EPOLLIN | EPOLLRDHUP)) == 0) return;
  bool received = channel_receive(false);
  if (!waiting) {
    serve(proc);
  } else if (!received) {
    /* Level-triggered epoll would spin on a full buffer; a hang-up is reported even so. */
    deaf = true;
  }
}

static void on_forker(int proc) {
  int error = children_take_birth();
  if (error != 0 && waiting) requests_fail_waiting(error);
  if (waiting) serve(proc);
}

static void on_signal(int proc) {
  struct signalfd_siginfo info;
  if (read(signal_fd, &info, sizeof info) < 0 && errno != EAGAIN) fail_world("signalfd", "", errno);
  children_reap();
  /* The leader that an EXEC waits for may be among the dead. */
  if (waiting) serve(proc);
}

static void on_command(const struct event *event) {
  struct command *command = command_find(event->id);
  if (command == NULL) return;
  if (event->source == SOURCE_LEADER) ending_receive(command);
  else if (event->source == SOURCE_STDIN) input_pump(command, event->events);
  else {
    outputs_pump(command, event->source == SOURCE_STDOUT ? 0 : 1);
    ending_advance(command);
  }
}

static void handle(int proc, const struct event *event) {
  switch (event->source) {
    case SOURCE_CHANNEL:
      return on_channel(proc, event->events);
    case SOURCE_CHILDREN:
      return on_signal(proc);
    case SOURCE_FORKER:
      return on_forker(proc);
    case SOURCE_NAMES:
      return names_hear();
    case SOURCE_PIDFD:
      return lineage_hear(event->id);
    case SOURCE_LISTENER:
      return children_listen((pid_t)event->id, event->events);
    case SOURCE_IDLE:
      return leader_hear();
    case SOURCE_DIAL:
      return dials_hear(event->id);
    case SOURCE_REPORTS:
      return telemetry_hear(event->id);
    case SOURCE_STDIN:
    case SOURCE_STDOUT:
    case SOURCE_STDERR:
    case SOURCE_LEADER:
      return on_command(event);
  }
}

/* Returns the earlier of two timeouts; -1 is never. */
static int64_t sooner(int64_t one, int64_t other) {
  if (one < 0 || other < 0) return one < 0 ? other : one;
  return one < other ? one : other;
}

/* Runs all due timers, and returns microseconds until the next. */
static int64_t next_timeout(int proc) {
  int deadline = requests_check_deadlines(proc);
  int strays = children_end_strays() ? STRAYS_RETRY_MS : -1;
  endings_release();
  int64_t programs = sooner(pending_check_deadlines(), sooner(lineage_flush_old(), telemetry_flush_old()));
  int64_t names = sooner(names_check_idle(), closings_check());
  int64_t overlays = dentries_rest(command_after(NULL) != NULL || !children_settled());
  int64_t calls = sooner(dials_retry(), replacements_check_deadlines());
  int64_t ms = sooner(sooner(sooner(deadline, strays), programs), sooner(names, sooner(overlays, calls)));
  return sooner(ms < 0 ? -1 : 1000 * ms, names_next_look_us());
}

void supervisor_run(const struct setup *setup, int alive, int null) {
  follow_outer(alive);
  int proc = build(setup, null);
  for (;;) {
    struct event events[EVENTS_MAX];
    int64_t timeout = next_timeout(proc);
    watch_channel();
    int count = watch_wait(events, timeout);
    for (int i = 0; i < count; i++) handle(proc, &events[i]);
  }
}
