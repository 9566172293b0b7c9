#include "seccomp/guard.h"

#include <errno.h>
#include <linux/filter.h>
#include <stdlib.h>
#include <string.h>

#include "lib/failure.h"

static struct sock_filter *program;
static size_t program_length;

void guard_keep(const uint8_t *instructions, size_t count) {
  if (instructions == NULL) return;
  program = calloc(count, sizeof *program);
  if (program == NULL) fail_world("seccomp", "guard", ENOMEM);
  memcpy(program, instructions, count * sizeof *program);
  program_length = count;
}

bool guard_kept(void) {
  return program != NULL;
}

/* Returns the instructions to skip after a comparison; -1: not a comparison. */
static int jump(const struct sock_filter *step, uint32_t value) {
  switch (step->code) {
    case BPF_JMP | BPF_JEQ | BPF_K:
      return value == step->k ? step->jt : step->jf;
    case BPF_JMP | BPF_JGE | BPF_K:
      return value >= step->k ? step->jt : step->jf;
    case BPF_JMP | BPF_JSET | BPF_K:
      return (value & step->k) != 0 ? step->jt : step->jf;
  }
  return -1;
}

static int answer(uint32_t verdict) {
  if (verdict == SECCOMP_RET_ALLOW) return 0;
  int error = (int)(verdict & SECCOMP_RET_DATA);
  return (verdict & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO && error != 0 ? error : EPERM;
}

/* Interprets the five kinds of instruction used by such filters (seccomp(2), "struct seccomp_data"). */
int guard_judge(const struct seccomp_data *call) {
  uint32_t value = 0;
  for (size_t at = 0; at < program_length; at++) {
    const struct sock_filter *step = &program[at];
    if (step->code == (BPF_RET | BPF_K)) return answer(step->k);
    if (step->code == (BPF_LD | BPF_W | BPF_ABS)) {
      if (step->k % sizeof value != 0 || step->k > sizeof *call - sizeof value) return EPERM;
      memcpy(&value, (const uint8_t *)call + step->k, sizeof value);
      continue;
    }
    int over = jump(step, value);
    if (over < 0) return EPERM;
    at += (size_t)over;
  }
  return EPERM;
}
