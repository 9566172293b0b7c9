#define _GNU_SOURCE
#include "run/children.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "deny/denied_names.h"
#include "lib/commands.h"
#include "lib/failure.h"
#include "lib/jobs.h"
#include "lib/tree.h"
#include "lib/watch.h"
#include "notify/listener.h"
#include "notify/writes/lookups.h"
#include "notify/writes/touched.h"
#include "run/forker.h"
#include "run/group.h"
#include "seccomp/filter.h"
#include "seccomp/guard.h"

/* Attempts to find a process's leader: when a parent dies during the walk, its child gets another parent. */
#define OWNER_ATTEMPTS 3

/* `kill -9 -1` kills all leaders and the forker together, but each takes a moment to die. */
#define IDLE_DIES_WITHIN_MS 10
#define FORKER_DIES_WITHIN_MS 50

static pid_t forker;
static int forker_socket;
static int proc_fd;
static const struct leader_events *events;
static struct leader *leaders; /* leaders not reaped yet */
static struct leader *idle;
static struct leader *job_leader; /* the leader of a terminal's session, for the command of that terminal */
static bool requested, job_requested;
static struct group *coming; /* group of the requested leader */
static bool strays_possible;

static struct leader **find(pid_t pid) {
  struct leader **link = &leaders;
  while (*link != NULL && (*link)->pid != pid) link = &(*link)->next;
  return link;
}

#define RESERVED_PIDS 300
/* Of the kernel's own on small machines. */
#define COMMON_PID_MAX 32768

/* Reads a number of a file below /proc/sys; 0: it cannot be read. */
static unsigned long number_in(int proc, const char *path) {
  char text[24] = "";
  int file = openat(proc, path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  return length > 0 ? strtoul(text, NULL, 10) : 0;
}

/* Lets the pids of commands begin anywhere in the first half, but above the numbers that no pid gets again (RESERVED_PIDS, kernel/pid.c);
   in the upper half, away from the host's, where pid_max is not the world's own limit of processes. Servers leave their pids in files of the project: with low pids, the next
   world and the host have live processes of the same numbers, and a server "is already running", or somebody else is ended.
   /proc/sys/kernel/ns_last_pid (pid_namespaces(7)) is missing without CONFIG_CHECKPOINT_RESTORE: then they begin low. */
static void choose_first_pid(int proc) {
  char text[24];
  uint32_t random;
  unsigned long most = number_in(proc, "sys/kernel/pid_max"), lowest = most >= COMMON_PID_MAX ? most / 2 : RESERVED_PIDS;
  int file = most <= 2 * RESERVED_PIDS ? -1 : openat(proc, "sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  if (getrandom(&random, sizeof random, 0) == sizeof random) {
    int length = snprintf(text, sizeof text, "%lu", lowest + random % ((most - lowest) / 2));
    (void)!write(file, text, (size_t)length);
  }
  close(file);
}

void children_start(int proc, int null, const struct leader_events *leader_events) {
  proc_fd = proc;
  events = leader_events;
  forker = forker_start(proc, null, &forker_socket);
  choose_first_pid(proc);
  if (guard_kept()) listener_take(forker_socket);
}

/* `terminal`: -1 without a job. */
static void request(char kind, int terminal) {
  /* Between a request and its answer, PID 1 has an unknown child: end strays first. */
  if (strays_possible) children_end_strays();
  int fds[GROUP_HANDLES + 1];
  coming = group_take();
  int count = group_handles(coming, fds);
  if (terminal >= 0) fds[count++] = terminal;
  if (job_send(forker_socket, &kind, 1, NULL, 0, fds, count, 0) < 0) fail_world("forker", "", errno);
  requested = true;
  job_requested = terminal >= 0;
}

void leader_request(void) {
  if (!requested && idle == NULL) request(REQUEST_LEADER, -1);
}

bool job_leader_ready(int terminal) {
  if (job_leader == NULL && !requested) request(REQUEST_JOB_LEADER, terminal);
  return job_leader != NULL;
}

void job_leader_drop(void) {
  if (job_leader != NULL) leader_lost(job_leader);
}

static void await(int socket) {
  struct pollfd word = {.fd = socket, .events = POLLIN};
  while (poll(&word, 1, -1) < 0) {
    if (errno != EINTR) fail_world("forker", "poll", errno);
  }
}

void children_watch(void) {
  watch_add(forker_socket, EPOLLIN, SOURCE_FORKER, 0);
  leader_request();
  /* The forker answers after dropping privileges and loading the filter; a failure there ends the world
     before READY. */
  await(forker_socket);
  int error = children_take_birth();
  if (error != 0) fail_world("forker", "first leader", error);
  if (!filter_listens()) return;
  await(idle->socket);
  leader_hear(); /* the kernel grants listeners to all commands or to no command */
}

int children_take_birth(void) {
  struct birth birth;
  int fds[JOB_FDS];
  int count = 0;
  ssize_t length = job_receive(forker_socket, &birth, sizeof birth, fds, &count, MSG_DONTWAIT);
  if (length < 0 && errno == EAGAIN) return 0;
  if (length != sizeof birth) fail_world("forker", "", length < 0 ? errno : ECHILD);
  requested = false;
  struct group *group = coming;
  coming = NULL;
  if (birth.error != 0) {
    group_end(group, false);
    return birth.error;
  }
  struct leader *leader = calloc(1, sizeof *leader);
  if (leader == NULL || count != 3) fail_world("forker", "", ENOMEM);
  *leader = (struct leader){
      .pid = birth.pid, .socket = fds[0], .outputs = {fds[1], fds[2]}, .listener = -1, .group = group, .next = leaders};
  leaders = leader;
  if (job_requested) job_leader = leader;
  else idle = leader;
  watch_add(leader->socket, EPOLLIN, SOURCE_IDLE, 0);
  return 0;
}

void leader_hear(void) {
  if (idle != NULL && !listener_hear(idle)) leader_lost(idle);
  if (job_leader != NULL && !listener_hear(job_leader)) leader_lost(job_leader);
}

void children_listen(pid_t pid, uint32_t events) {
  if (pid == 0) listener_serve(NULL, events);
  else if (*find(pid) != NULL) listener_serve(*find(pid), events);
}

bool children_gated(void) { return guard_kept() || (idle != NULL && idle->listener >= 0); }

bool leader_ready(void) {
  return idle != NULL;
}

int leader_assign(struct command *command, const struct order *order, const void *payload, size_t length,
                  const int *fds, int fd_count, bool is_job) {
  struct leader *leader = is_job ? job_leader : idle;
  if (is_job) job_leader = NULL;
  else idle = NULL;
  if (job_send(leader->socket, order, sizeof *order, payload, length, fds, fd_count, MSG_DONTWAIT) < 0) {
    int error = errno;
    leader_lost(leader);
    errno = error;
    return -1;
  }
  leader->command = command;
  command->leader = leader;
  for (int i = 0; i < 2; i++) {
    command->outputs[i].fd = leader->outputs[i];
    leader->outputs[i] = -1;
  }
  if ((leader->listener >= 0 || guard_kept()) && lookups_counted()) touched_begin(command);
  watch_change(leader->socket, EPOLLIN, SOURCE_LEADER, command->id);
  return 0;
}

void leader_released(struct leader *leader, bool leaves_strays, bool group_killed) {
  close(leader->socket);
  leader->socket = -1;
  listener_remove(leader);
  for (int i = 0; i < 2; i++) {
    if (leader->outputs[i] >= 0) close(leader->outputs[i]);
    leader->outputs[i] = -1;
  }
  leader->command = NULL;
  leader->leaves_strays = leaves_strays;
  if (leaves_strays) group_destroy(leader->group);
  else group_end(leader->group, group_killed);
  leader->group = NULL;
}

static void forget(struct leader *leader) {
  struct command *command = leader->command;
  if (leader == idle) idle = NULL;
  if (leader == job_leader) job_leader = NULL;
  if (command != NULL) group_measure(leader->group, &command->measured);
  leader_released(leader, true, true);
  /* Processes of the command become children of PID 1; the command's end is reported when all have died. */
  strays_possible = true;
  if (command != NULL) events->orphaned(command);
}

void leader_lost(struct leader *leader) {
  kill(leader->pid, SIGKILL); /* it may live on; orphans come to PID 1 when it is reaped */
  forget(leader);
}

static bool closes(int socket, int within_ms) {
  return poll(&(struct pollfd){.fd = socket}, 1, within_ms) > 0;
}

void children_expect_forker(void) {
  /* The idle leader lives: the command's leader was killed alone. */
  if (idle != NULL && !closes(idle->socket, IDLE_DIES_WITHIN_MS)) return;
  if (closes(forker_socket, FORKER_DIES_WITHIN_MS)) fail_world("forker", "", ECHILD);
}

static void reaped(pid_t pid) {
  if (pid == forker) fail_world("forker", "", ECHILD);
  struct leader **link = find(pid);
  struct leader *leader = *link;
  if (leader == NULL) {
    strays_possible = true;
    return;
  }
  /* The last report may still be in the socket. */
  if (leader->command != NULL) events->report(leader->command);
  if (leader->socket >= 0) forget(leader);
  if (leader->leaves_strays) strays_possible = true;
  link = find(pid);
  *link = leader->next;
  free(leader);
}

void children_reap(void) {
  siginfo_t info;
  for (;;) {
    info.si_pid = 0;
    if (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG) < 0 || info.si_pid == 0) break;
    if (info.si_code == CLD_STOPPED) kill(info.si_pid, SIGCONT);
    else reaped(info.si_pid);
  }
  leader_request();
}

bool children_end_strays(void) {
  if (!strays_possible || requested) return strays_possible;
  int count;
  const struct tree_process *children = tree_below(proc_fd, 1, 0, &count);
  bool any = false;
  for (int i = 0; i < count; i++) {
    if (children[i].pid == forker || *find(children[i].pid) != NULL) continue;
    kill(children[i].pid, SIGKILL);
    any = true;
  }
  /* Denied names made by the last strays still count as theirs. */
  if (!any) names_look();
  strays_possible = any;
  return any;
}

bool children_settled(void) {
  for (const struct leader *leader = leaders; leader != NULL; leader = leader->next) {
    if (leader->leaves_strays) return false;
  }
  return !strays_possible;
}

void children_end_all(void) {
  strays_possible = true;
  tree_end_all();
}

struct command *children_owner(pid_t task) {
  for (int attempt = 0; attempt < OWNER_ATTEMPTS; attempt++) {
    pid_t top = tree_top(proc_fd, task);
    const struct leader *leader = top == 0 ? NULL : *find(top);
    if (leader != NULL) return leader->command;
  }
  return NULL;
}
