/** A stand-in for `substrate-init` that the kernel stops at a chosen rename: random kills practically never hit the moment between two. */
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Runs INIT with the same words. Where the file ORDER stands, it is taken away, and the program is killed when it is about to
 * make the rename of that number (PTRACE_SYSCALL stops at each call; PTRACE_GET_SYSCALL_INFO names it on every architecture).
 * HIT is written when that happened. With CLOSED the program is refused a user namespace, as on hosts that give ordinary users none.
 */
const SOURCE = `
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int is_rename(unsigned long long number) {
#ifdef SYS_rename
  if (number == SYS_rename) return 1;
#endif
#ifdef SYS_renameat
  if (number == SYS_renameat) return 1;
#endif
  return number == SYS_renameat2;
}

static int close_namespaces(void) {
  struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = {4, rules};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return -1;
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

int main(int count, char **words) {
  if (CLOSED && close_namespaces() < 0) return 119;
  long left = 0;
  int both = 0;
  FILE *order = fopen(ORDER, "r");
  if (order != NULL && (fscanf(order, "%ld %d", &left, &both) != 2 || unlink(ORDER) < 0)) return 120;
  words[0] = INIT;
  if (order == NULL) return execv(INIT, words), 121;
  fclose(order);
  pid_t child = fork();
  if (child < 0) return 122;
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 || raise(SIGSTOP) != 0) _exit(123);
    execv(INIT, words);
    _exit(124);
  }
  int status;
  if (waitpid(child, &status, 0) != child || ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) < 0) return 125;
  for (int signal = 0;;) {
    if (ptrace(PTRACE_SYSCALL, child, NULL, (void *)(long)signal) < 0 || waitpid(child, &status, 0) != child) return 126;
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    if (WIFSIGNALED(status)) return 127;
    signal = WSTOPSIG(status);
    if (signal == SIGTRAP) signal = 0;
    if (signal != (SIGTRAP | 0x80)) continue;
    signal = 0;
    struct __ptrace_syscall_info call;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, child, (void *)sizeof call, &call) <= 0) return 128;
    if (call.op != PTRACE_SYSCALL_INFO_ENTRY || !is_rename(call.entry.nr) || --left > 0) continue;
    int hit = open(HIT, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (hit < 0) return 130;
    /* The one that would recover at once goes first. */
    if (both) kill(getppid(), SIGKILL);
    kill(child, SIGKILL);
    return waitpid(child, &status, 0) == child ? 137 : 129;
  }
}
`;

export class RenameKiller {
  /** To be used instead of `substrate-init`. */
  readonly program: string;
  readonly #order: string;
  readonly #hit: string;

  /** @param folder where any user of the test may write. @param init the real program. @param closed no user namespace for it. */
  constructor(folder: string, init: string, closed = false) {
    this.program = join(folder, "kill-at");
    this.#order = join(folder, "kill-at-order");
    this.#hit = join(folder, "kill-at-hit");
    const source = `${this.program}.c`;
    writeFileSync(source, SOURCE);
    const names = Object.entries({ INIT: init, ORDER: this.#order, HIT: this.#hit });
    const defines = [`-DCLOSED=${closed ? 1 : 0}`, ...names.map(([name, path]) => `-D${name}="${path}"`)];
    const made = spawnSync("cc", ["-O1", "-static", ...defines, "-o", this.program, source]);
    if (made.status !== 0) throw new Error(`'kill-at' does not compile: ${made.stderr.toString()}`);
    chmodSync(folder, 0o777);
  }

  /** The next run of the program is killed before its rename of this number, counted from 1; `both`: with whoever started it. */
  arm(rename: number, both = false): void {
    rmSync(this.#hit, { force: true });
    writeFileSync(this.#order, `${rename} ${both ? 1 : 0}`);
  }

  /** Whether the armed run came that far. An order that no run took is withdrawn. */
  disarm(): boolean {
    rmSync(this.#order, { force: true });
    return existsSync(this.#hit);
  }
}
