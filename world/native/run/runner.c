#define _GNU_SOURCE
#include "run/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/frames.h"
#include "lib/jobs.h"
#include "outer/limits.h"
#include "run/clone3.h"
#include "run/program.h"
#include "seccomp/filter.h"

#define STACK_SIZE (64 * 1024)
/* Pages of the buffers that an ordinary job touches. */
#define WARM_PAGES 3
#define PAGE 4096

static struct {
  struct order order;
  uint8_t payload[JOB_INLINE];
} job;

static _Alignas(64) char stack[STACK_SIZE];
static struct runner runner;
static int channel_fd;
static int output_fds[2];
static int watch_fd; /* end of file when execve closes the runner's end */
static int running_fd; /* the runner's end */
static bool in_job; /* the session is the leader's, and so is its terminal */
static void *mapping = MAP_FAILED;
static size_t mapping_length;

static void give_up(const char *step, const char *path, int error) {
  runner.step = step;
  runner.path = path;
  runner.error = error;
  _exit(127);
}

/* Maps the payload of a large job into this memory. */
static uint8_t *map_payload(int fd, size_t length) {
  mapping = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  if (mapping == MAP_FAILED) give_up("mmap", "", errno);
  mapping_length = length;
  return mapping;
}

/* Puts files at their fixed numbers, by way of numbers above both. Of other descriptors at these numbers only the pipe that
   reports execve to the leader is still needed. 0, or -1 with errno. */
static int place_files(const int fds[], const int numbers[], int count) {
  enum { ABOVE = 10 };
  int moved[2];
  if (running_fd < ABOVE && fcntl(running_fd, F_DUPFD_CLOEXEC, ABOVE) < 0) return -1;
  for (int i = 0; i < count; i++) {
    if ((moved[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, ABOVE)) < 0) return -1;
  }
  for (int i = 0; i < count; i++) {
    if (dup2(moved[i], numbers[i]) < 0) return -1;
  }
  return 0;
}

/* Sends the listener to PID 1 and closes this copy before the program runs: while any copy is open a call
   waits for its answer, and PID 1's death must end the wait. */
static int hand_over(int listener) {
  struct report report = {.kind = REPORT_LISTENER};
  if (job_send(channel_fd, &report, sizeof report, NULL, 0, &listener, listener >= 0 ? 1 : 0, 0) < 0) return -1;
  return listener >= 0 ? close(listener) : 0;
}

/* Prepares the process. Its descriptor table is a copy, so the leader's stays unchanged. */
static void prepare(void) {
  if (in_job ? setpgid(0, 0) < 0 : setsid() < 0) _exit(1);
  /* All descriptors are close-on-exec already; this also covers future mistakes. */
  if (syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) < 0) _exit(1);
  for (int i = 0; i < 2; i++) {
    if (dup2(output_fds[i], STDOUT_FILENO + i) < 0) _exit(1);
  }
  int listener;
  if (filter_load_command(&listener) < 0) _exit(1);
  /* Before the command's lower limit on descriptors applies: the descriptors that commands leave in flight
     (SCM_RIGHTS counts per user) stay below the limit here and never block this message. */
  if (filter_listens() && hand_over(listener) < 0) _exit(1);
  if (limits_enter_command() < 0) _exit(1);
}

static void forget_signals(void) {
  const struct timespec at_once = {0, 0};
  sigset_t all;
  sigfillset(&all);
  while (sigtimedwait(&all, NULL, &at_once) > 0) continue;
}

/* Puts a job in front of its session's terminal; tcsetpgrp(3) stops no caller that blocks SIGTTOU. */
static int take_front(void) {
  return in_job ? tcsetpgrp(STDIN_FILENO, getpid()) : ioctl(STDIN_FILENO, TIOCSCTTY, 0);
}

/* Makes standard input the controlling terminal, and all three standard descriptors. */
static void enter_terminal(void) {
  if (take_front() < 0 || dup2(STDIN_FILENO, STDOUT_FILENO) < 0 || dup2(STDIN_FILENO, STDERR_FILENO) < 0) {
    give_up("terminal", "", errno);
  }
}

/* No allocation, lock or buffered output: the leader shares this memory, errno included. The leader waits in
   poll(2) and writes no memory used here until execve replaces the runner's memory. */
static int run(void) {
  struct program program;
  int fds[JOB_FDS];
  int count = 0;
  sigset_t none;
  prepare();
  ssize_t length = job_receive(channel_fd, &job, sizeof job, fds, &count, 0);
  if (length < (ssize_t)sizeof job.order || job.order.kind != ORDER_RUN) _exit(0);
  runner.received = true;
  runner.keep = job.order.keep != 0;
  int input = job.order.input != 0;
  int numbers[2], files = 0;
  if (job.order.memory_file != 0) numbers[files++] = FRAME_MEMORY_FILE_FD;
  if (job.order.script != 0) numbers[files++] = FRAME_STATE_SCRIPT_FD;
  int large = job.order.payload_in_file != 0;
  if (count != input + files + large || (!large && job.order.length != (size_t)length - sizeof job.order)) {
    give_up("receive", "", EPROTO);
  }
  uint8_t *payload = large ? map_payload(fds[input + files], job.order.length) : job.payload;
  if (program_unpack(payload, job.order.length, &program) < 0) give_up("unpack", "", errno);
  program.asked = job.order.asked != 0;
  if (input && dup2(fds[0], STDIN_FILENO) < 0) give_up("stdin", "", errno);
  /* Signals sent while the runner waited (kill -TERM -1 of another command) are not for this command; those of the terminal's keys,
     from here on, are. */
  forget_signals();
  if (job.order.terminal != 0) enter_terminal();
  if (job.order.one_output != 0 && dup2(STDOUT_FILENO, STDERR_FILENO) < 0) give_up("stderr", "", errno);
  /* The runner shares the leader's memory, and not its mask (no CLONE_FS). */
  if (job.order.umask != 0) umask(job.order.umask & 0777);
  if (files > 0 && place_files(fds + input, numbers, files) < 0) give_up("files", "", errno);
  if (chdir(program.cwd) < 0) give_up("chdir", program.cwd, errno);
  sigemptyset(&none);
  if (sigprocmask(SIG_SETMASK, &none, NULL) < 0) give_up("sigprocmask", "", errno);
  give_up("execve", program.argv[0], program_execute(&program));
  return 0;
}

/* Takes the page faults of memory shared with the forker before the job comes. */
static void warm(void) {
  volatile uint8_t *buffer = (volatile uint8_t *)&job;
  volatile char *top = stack + sizeof stack;
  program_warm();
  for (int i = 0; i < WARM_PAGES; i++) {
    buffer[i * PAGE] = 0;
    top[-1 - i * PAGE] = 0;
  }
}

pid_t runner_start(int channel, const int outputs[2], int group, bool is_job) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) < 0) return -1;
  channel_fd = channel;
  in_job = is_job;
  watch_fd = ends[0];
  running_fd = ends[1];
  output_fds[0] = outputs[0];
  output_fds[1] = outputs[1];
  warm();
  pid_t pid = clone3_sharing_memory(run, stack, sizeof stack, group);
  if (pid < 0) {
    int error = errno;
    close(ends[0]);
    close(ends[1]);
    errno = error;
    return -1;
  }
  close(ends[1]);
  return pid;
}

/* Shares errno with the runner, and only a failing call writes errno. So the leader makes no call that can
   fail while the runner lives: no read without data, no signal to a reaped process. */
const struct runner *runner_wait(pid_t pid, int signals) {
  struct pollfd sources[2] = {{.fd = watch_fd, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
  struct signalfd_siginfo info;
  siginfo_t state;
  while (poll(sources, 2, -1) >= 0 && sources[0].revents == 0) {
    /* Stopped from inside (kill -STOP -1 of another command): continue, so that the runner can take its
       job. */
    if ((sources[1].revents & POLLIN) == 0 || read(signals, &info, sizeof info) < 0) continue;
    if (waitid(P_PID, (id_t)pid, &state, WSTOPPED | WNOHANG) == 0 && state.si_pid == pid) kill(pid, SIGCONT);
  }
  close(watch_fd);
  if (mapping != MAP_FAILED && runner.step == NULL) munmap(mapping, mapping_length);
  return &runner;
}
