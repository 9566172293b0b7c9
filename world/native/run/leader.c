#define _GNU_SOURCE
#include "run/leader.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/jobs.h"
#include "lib/tree.h"
#include "run/runner.h"

/* Time for killed processes to die before the command is reported with leftovers. */
#define END_WITHIN_MS 1000
#define END_RETRY_MS 10

/* Time for what the main process left running to end by itself: bash does not wait for the programs of `> >(tee log)`,
   which have the last lines of the output still to write. */
#define PATIENCE_MS 200

/* Time for git to pack a repository, which it leaves in the background at the end of one commit in some thousand, and how often to look
   for it. Ended each time, a repository would never be packed. */
#define PACKING_MS 60000
#define PACKING_LOOK_MS 50

/* Time from SIGTERM to SIGKILL for what did not: servers remove their sockets and pid files, and databases write what they hold. */
#define ASKED_MS 1000

static int channel, proc_fd, signal_fd;
static int group_folder, group_kill_file; /* -1: the command has no cgroup */
static uint32_t group_killed; /* cgroup.kill was written */
static pid_t main_pid;
static int main_status;
static int main_ended, main_reported, keep;
static bool has_job; /* the main process is a job of this session */
static int64_t patience_end; /* 0: the main process runs */
static int64_t packing_end; /* 0: what it left was not looked at for git */
static int64_t asked_end; /* 0: what it left has not been asked to end */
static bool is_signalled; /* by an order */
static uint32_t over_before; /* the main process had ended before */
static bool has_sigterm; /* the whole tree was sent one by an order */
static int64_t end_deadline; /* 0: not ending */
static int end_passes;
static uint32_t seen; /* most processes seen at once during a signal or the end */
static uint32_t reaped_at_end;
static uint32_t killed_after; /* ended by SIGTERM or SIGKILL when patience was over */

static void report_ending(uint32_t kind, int leftover, int kept) {
  struct report report = {.kind = kind, .ending = {.leftover = (uint32_t)leftover, .kept = (uint32_t)kept, .killed_after = killed_after, .over_before = over_before, .seen = seen, .group_killed = group_killed}};
  struct ending *ending = &report.ending;
  struct rusage usage = {0};
  getrusage(RUSAGE_CHILDREN, &usage);
  ending->cpu_us = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
                   (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  ending->maxrss = (uint64_t)usage.ru_maxrss * 1024;
  if (!main_ended) ending->signal = SIGKILL;
  else if (WIFSIGNALED(main_status)) ending->signal = (uint32_t)WTERMSIG(main_status);
  else ending->code = (uint32_t)WEXITSTATUS(main_status);
  if (job_send(channel, &report, sizeof report, NULL, 0, NULL, 0, 0) < 0) _exit(1);
}

_Noreturn static void report_failure(const char *step, const char *path, int error) {
  struct report report = {.kind = REPORT_FAILED, .error = (uint32_t)error};
  strncpy(report.step, step, sizeof report.step - 1);
  job_send(channel, &report, sizeof report, path, strnlen(path, REPORT_PATH_MAX), NULL, 0, 0);
  _exit(0);
}

/* No runner: reports the failure to the next job, which would wait otherwise. */
_Noreturn static void refuse_job(int error) {
  struct order order;
  recv(channel, &order, sizeof order, 0);
  report_failure("fork", "", error);
}

/* Starts the runner; returns when the command runs. */
static void start(const int outputs[2]) {
  main_pid = runner_start(channel, outputs, group_folder, has_job);
  if (main_pid < 0) refuse_job(errno);
  /* Only the command's processes hold the pipes then. */
  close(outputs[0]);
  close(outputs[1]);
  if (group_folder >= 0) close(group_folder);
  const struct runner *runner = runner_wait(main_pid, signal_fd);
  if (!runner->received) _exit(0);
  if (runner->step != NULL) {
    waitpid(main_pid, NULL, 0);
    report_failure(runner->step, runner->path, runner->error);
  }
  keep = runner->keep;
}

static void see(uint32_t processes) {
  if (processes > seen) seen = processes;
}

static void begin_end(void) {
  if (end_deadline == 0) end_deadline = now_ms() + END_WITHIN_MS;
}

/* Takes an order from PID 1. False when no more orders will come: a closed socket stays readable for ever. */
static bool take_order(void) {
  struct order order;
  int fds[JOB_FDS];
  int count = 0;
  ssize_t length = job_receive(channel, &order, sizeof order, fds, &count, MSG_DONTWAIT);
  if (length < 0 && errno == EAGAIN) return true;
  if (!is_signalled) over_before = main_ended != 0;
  is_signalled = true;
  if (length != sizeof order || order.kind != ORDER_SIGNAL || order.signal == SIGKILL) begin_end();
  else {
    if (order.signal == SIGTERM) has_sigterm = true;
    see((uint32_t)tree_signal(proc_fd, getpid(), 1, (int)order.signal));
    if (main_ended && asked_end == 0) asked_end = now_ms() + ASKED_MS;
  }
  return length > 0;
}

/* Kills the command's processes. A single write kills the whole group and its new forks. Without a group,
   orphans become children of this subreaper, so killing direct children converges; a process that forks
   faster is caught by killing the whole tree in each pass. The first pass counts the whole tree before it kills:
   later ones see what is left of a tree that is dying, on a busy machine less than its limit. */
static void end_all(void) {
  if (group_kill_file >= 0 && write(group_kill_file, "1", 1) == 1) {
    group_killed = 1;
    return;
  }
  bool is_first = end_passes++ == 0;
  int count;
  if (is_first) {
    tree_below(proc_fd, getpid(), 1, &count);
    see((uint32_t)count);
  }
  see((uint32_t)tree_signal(proc_fd, getpid(), !is_first, SIGKILL));
}

/* Reaps children; true when no child is left. */
static int reap(void) {
  int status;
  pid_t pid;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    if (end_deadline != 0) see(++reaped_at_end);
    if (asked_end != 0) killed_after++;
    if (pid != main_pid || main_ended) continue;
    main_status = status;
    main_ended = 1;
  }
  return pid < 0 && errno == ECHILD;
}

static void report_stop(void) {
  siginfo_t state = {0};
  if (!has_job || main_ended || waitid(P_PID, (id_t)main_pid, &state, WSTOPPED | WNOHANG) < 0 || state.si_pid != main_pid) return;
  struct report report = {.kind = REPORT_STOPPED, .error = (uint32_t)state.si_status};
  if (job_send(channel, &report, sizeof report, NULL, 0, NULL, 0, 0) < 0) _exit(1);
}

/* Many programs take a second SIGTERM for an order to end without tidying up. A stopped process gets it when it goes on. */
static void ask_to_end(void) {
  if (!has_sigterm) see((uint32_t)tree_signal(proc_fd, getpid(), 1, SIGTERM));
  tree_signal(proc_fd, getpid(), 1, SIGCONT);
}

/* Whether a process is `git gc --auto`, or `git maintenance run --auto`: each leaves itself in the background. */
static bool is_packing(pid_t pid) {
  char path[32], text[256];
  snprintf(path, sizeof path, "%d/cmdline", pid);
  int fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
  ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (fd >= 0) close(fd);
  if (length <= 0) return false;
  text[length] = 0;
  const char *name = strrchr(text, '/');
  bool packs = false, alone = false;
  for (const char *word = text + strlen(text) + 1; word < text + length; word += strlen(word) + 1) {
    packs |= strcmp(word, "gc") == 0 || strcmp(word, "maintenance") == 0;
    alone |= strcmp(word, "--auto") == 0;
  }
  return strcmp(name == NULL ? text : name + 1, "git") == 0 && packs && alone;
}

/* Orphans are children of this process. */
static bool is_git_packing(void) {
  int count;
  const struct tree_process *left = tree_below(proc_fd, getpid(), 0, &count);
  for (int i = 0; i < count; i++) {
    if (is_packing(left[i].pid)) return true;
  }
  return false;
}

/* Ends what the main process left running: it has time to end by itself, then to end on SIGTERM. */
static void end_left(void) {
  if (end_deadline != 0) return;
  int64_t now = now_ms();
  if (patience_end == 0) patience_end = now + PATIENCE_MS;
  if (now < patience_end) return;
  if (packing_end == 0) packing_end = now + PACKING_MS;
  if (asked_end == 0 && !has_sigterm && now < packing_end && is_git_packing()) {
    patience_end = now + PACKING_LOOK_MS;
    return;
  }
  if (asked_end == 0) {
    asked_end = now + ASKED_MS;
    ask_to_end();
  }
  if (now >= asked_end) begin_end();
}

/* Decides after each change: report an end or a stop, kill, or exit. */
static void settle(void) {
  if (reap()) {
    report_ending(main_reported ? REPORT_GONE : REPORT_ENDED, 0, 0);
    _exit(0);
  }
  report_stop();
  if (main_ended && !keep) end_left();
  if (end_deadline != 0) {
    if (now_ms() > end_deadline) {
      report_ending(main_reported ? REPORT_GONE : REPORT_ENDED, 1, 0);
      _exit(0);
    }
    end_all();
  } else if (keep && main_ended && !main_reported) {
    int kept;
    tree_below(proc_fd, getpid(), 1, &kept);
    report_ending(REPORT_KEPT, 0, kept);
    main_reported = 1;
  }
}

/* Where this fails, the runner does not get the terminal either, and says so. */
static void lead_session(int terminal) {
  if (setsid() > 0) ioctl(terminal, TIOCSCTTY, 0);
  close(terminal);
}

void leader_run(int socket, const int outputs[2], int proc, const int handles[GROUP_HANDLES], int terminal) {
  channel = socket;
  proc_fd = proc;
  group_folder = handles[0];
  group_kill_file = handles[1];
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  /* Every signal is blocked since the forker began: only SIGKILL and SIGSTOP from inside arrive. */
  signal_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signal_fd < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0) _exit(1);
  has_job = terminal >= 0;
  if (has_job) lead_session(terminal);
  start(outputs);
  struct pollfd sources[2] = {{.fd = signal_fd, .events = POLLIN}, {.fd = channel, .events = POLLIN}};
  for (;;) {
    int ready = poll(sources, 2, end_deadline != 0 || patience_end != 0 ? END_RETRY_MS : -1);
    if (ready < 0 && errno != EINTR) _exit(1);
    if (sources[1].revents != 0 && !take_order()) sources[1].fd = -1;
    /* Reap first: usually the last child, and the signal need not be read. */
    settle();
    struct signalfd_siginfo info;
    if (sources[0].revents == 0) continue;
    if (read(signal_fd, &info, sizeof info) < 0 && errno != EAGAIN) _exit(1);
    settle();
  }
}
