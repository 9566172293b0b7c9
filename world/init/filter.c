#define _GNU_SOURCE
#include "filter.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "failure.h"
#include "guard.h"
#include "jobs.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

static struct sock_fprog program;

void filter_keep(const uint8_t *instructions, size_t count) {
  if (instructions == NULL) return;
  struct sock_filter *copy = calloc(count, sizeof *copy);
  if (copy == NULL) fail_world("seccomp", "no room for the filter", ENOMEM);
  memcpy(copy, instructions, count * sizeof *copy);
  program = (struct sock_fprog){.len = (unsigned short)count, .filter = copy};
}

static void load(void) {
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0) {
    fail_world("seccomp", "the kernel does not take the filter", errno);
  }
}

/* A kernel that does not know notifications says so here (EINVAL), one whose notices are longer than ours is refused. */
static void check_sizes(void) {
  struct seccomp_notif_sizes sizes;
  if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) < 0) fail_world("seccomp log", "sizes", errno);
  if (sizes.seccomp_notif > sizeof(struct seccomp_notif) ||
      sizes.seccomp_notif_resp > sizeof(struct seccomp_notif_resp)) {
    fail_world("seccomp log", "sizes", EOVERFLOW);
  }
}

/* Since Linux 5.19 a call that is being answered is not interrupted by a signal, which would make the kernel start it
   again and ask twice. Older ones ask twice. */
static int load_with_listener(void) {
  unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
  long listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
  if (listener >= 0 || errno != EINVAL) return (int)listener;
  return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

/* The copy here is closed before anything else is started: while any copy is open a call waits for an answer, and
   PID 1's death must end that. */
static void load_and_hand_over(int socket) {
  check_sizes();
  int listener = load_with_listener();
  if (listener < 0) fail_world("seccomp log", "the kernel gives no listener", errno);
  if (job_send(socket, "s", 1, NULL, 0, &listener, 1, 0) < 0) fail_world("seccomp log", "listener", errno);
  if (close(listener) < 0) fail_world("seccomp log", "listener", errno);
}

void filter_load(int socket) {
  if (program.filter == NULL) return;
  if (guard_kept()) load_and_hand_over(socket);
  else load();
}
