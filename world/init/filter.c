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

static struct sock_fprog program;

void filter_keep(const uint8_t *instructions, size_t count) {
  if (instructions == NULL) return;
  struct sock_filter *copy = calloc(count, sizeof *copy);
  if (copy == NULL) fail_world("seccomp", "no room for the filter", ENOMEM);
  memcpy(copy, instructions, count * sizeof *copy);
  program = (struct sock_fprog){.len = (unsigned short)count, .filter = copy};
}

void filter_load(void) {
  if (program.filter == NULL) return;
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0) {
    fail_world("seccomp", "the kernel does not take the filter", errno);
  }
}
