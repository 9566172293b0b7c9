#define _GNU_SOURCE
#include "seccomp/filter.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/failure.h"
#include "lib/jobs.h"
#include "seccomp/guard.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

static struct sock_fprog programs[FILTERS];

/* Two random words in arguments that execve does not have. A runner passes them when starting its command's
   own program, already judged by the broker: filters recognise the call and let it pass without a question.
   execve clears registers and memory, no process inside may read a runner's memory, and no command can read a
   filter (PTRACE_SECCOMP_GET_FILTER needs CAP_SYS_ADMIN). */
static uint64_t own_start[2];

#define HALF(argument, part) \
  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[argument]) + 4 * (part))
#define IS(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), 0, skip)
#define OWN_START 11

static void put_own_start(struct sock_filter code[OWN_START]) {
  if (own_start[0] == 0 && getrandom(own_start, sizeof own_start, 0) != sizeof own_start) {
    fail_world("seccomp", "getrandom", errno);
  }
  const struct sock_filter own[OWN_START] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      IS(SYS_execve, 9),
      HALF(3, 0),
      IS(own_start[0], 7),
      HALF(3, 1),
      IS(own_start[0] >> 32, 5),
      HALF(4, 0),
      IS(own_start[1], 3),
      HALF(4, 1),
      IS(own_start[1] >> 32, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  memcpy(code, own, sizeof own);
}

void filter_keep(enum filter which, const uint8_t *instructions, size_t count) {
  if (instructions == NULL) return;
  bool listens = which == FILTER_RECORD || (which == FILTER_WORLD && guard_kept());
  size_t more = listens ? OWN_START : 0;
  struct sock_filter *copy = calloc(more + count, sizeof *copy);
  if (copy == NULL) fail_world("seccomp", "filter", ENOMEM);
  if (listens) put_own_start(copy);
  memcpy(copy + more, instructions, count * sizeof *copy);
  programs[which] = (struct sock_fprog){.len = (unsigned short)(more + count), .filter = copy};
}

/* Returns a word that differs from the word let through, and is as hard to guess. */
static uint64_t asked_word(void) {
  return own_start[1] ^ 1;
}

void filter_execute(const char *file, char *const *argv, char *const *envp, bool asked) {
  syscall(SYS_execve, file, argv, envp, own_start[0], asked ? asked_word() : own_start[1]);
}

bool filter_is_own_start(const struct seccomp_data *call) {
  return call->nr == SYS_execve && call->args[3] == own_start[0] && call->args[4] == asked_word();
}

static int load(enum filter which) {
  return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &programs[which]);
}

/* Fails on a kernel without notifications (EINVAL), and refuses a kernel with longer notifications than this
   build's. */
static void check_sizes(void) {
  struct seccomp_notif_sizes sizes;
  if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) < 0) fail_world("seccomp log", "sizes", errno);
  if (sizes.seccomp_notif > sizeof(struct seccomp_notif) ||
      sizes.seccomp_notif_resp > sizeof(struct seccomp_notif_resp)) {
    fail_world("seccomp log", "sizes", EOVERFLOW);
  }
}

/* Since Linux 5.19 (WAIT_KILLABLE_RECV) no signal interrupts a call while its answer is pending; otherwise
   the kernel restarts the call and notifies twice, as older kernels do. */
static int load_with_listener(enum filter which) {
  unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
  long listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &programs[which]);
  if (listener >= 0 || errno != EINVAL) return (int)listener;
  return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &programs[which]);
}

/* Loads the filter and sends its listener to PID 1. The copy here is closed before any other process starts:
   while any copy is open a call waits for its answer, and PID 1's death must end the wait. */
static void load_and_hand_over(int socket) {
  check_sizes();
  int listener = load_with_listener(FILTER_WORLD);
  if (listener < 0) fail_world("seccomp log", "listener", errno);
  if (job_send(socket, "s", 1, NULL, 0, &listener, 1, 0) < 0) fail_world("seccomp log", "listener", errno);
  if (close(listener) < 0) fail_world("seccomp log", "listener", errno);
}

void filter_load_world(int socket) {
  if (programs[FILTER_WORLD].filter == NULL) return;
  if (guard_kept()) load_and_hand_over(socket);
  else if (load(FILTER_WORLD) < 0) fail_world("seccomp", "filter", errno);
}

/* True for a kernel without notifications, or when another sandbox already has a listener. */
static bool gives_none(int error) {
  return error == EINVAL || error == ENOSYS || error == EBUSY;
}

bool filter_listens(void) {
  return programs[FILTER_RECORD].filter != NULL;
}

int filter_load_command(int *listener) {
  *listener = programs[FILTER_RECORD].filter == NULL ? -1 : load_with_listener(FILTER_RECORD);
  if (*listener >= 0) return 0;
  if (programs[FILTER_RECORD].filter != NULL && !gives_none(errno)) return -1;
  return programs[FILTER_COMMAND].filter == NULL ? 0 : load(FILTER_COMMAND);
}
