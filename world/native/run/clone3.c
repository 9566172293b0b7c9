#define _GNU_SOURCE
#include "run/clone3.h"

#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>

/* The child starts on an empty stack and must not return from this function: the code calls `run`, then
   exits. */
#if defined(__x86_64__)
static long clone3_calling(struct clone_args *args, int (*run)(void)) {
  long result = SYS_clone3;
  __asm__ volatile("syscall\n\t"
                   "testq %%rax, %%rax\n\t"
                   "jnz 1f\n\t"
                   "xorl %%ebp, %%ebp\n\t"
                   "callq *%[run]\n\t"
                   "movl %%eax, %%edi\n\t"
                   "movl %[exit], %%eax\n\t"
                   "syscall\n\t"
                   "1:"
                   : "+a"(result)
                   : "D"(args), "S"(sizeof *args), [run] "r"(run), [exit] "i"(SYS_exit)
                   : "rcx", "r11", "memory", "cc");
  return result;
}
#elif defined(__aarch64__)
static long clone3_calling(struct clone_args *args, int (*run)(void)) {
  register long number __asm__("x8") = SYS_clone3;
  register long result __asm__("x0") = (long)args;
  register long size __asm__("x1") = sizeof *args;
  __asm__ volatile("svc #0\n\t"
                   "cbnz x0, 1f\n\t"
                   "mov x29, #0\n\t"
                   "blr %[run]\n\t"
                   "mov x8, %[exit]\n\t"
                   "svc #0\n\t"
                   "1:"
                   : "+r"(result)
                   : "r"(number), "r"(size), [run] "r"(run), [exit] "i"(SYS_exit)
                   : "x30", "memory", "cc");
  return result;
}
#else
#error "clone3 with a stack is written for x86-64 and aarch64"
#endif

static int call(void *run) {
  return (*(int (**)(void))run)();
}

pid_t clone3_sharing_memory(int (*run)(void), char *stack, size_t size, int group) {
  static int (*running)(void);
  running = run;
  if (group < 0) return clone(call, stack + size, CLONE_VM | SIGCHLD, &running);
  struct clone_args args = {.flags = CLONE_VM | CLONE_INTO_CGROUP,
                            .cgroup = (uint64_t)group,
                            .exit_signal = SIGCHLD,
                            .stack = (uint64_t)(uintptr_t)stack,
                            .stack_size = size};
  long result = clone3_calling(&args, run);
  if (result >= 0) return (pid_t)result;
  errno = (int)-result;
  return -1;
}
