/** Programs that reach for other processes, and that try to stay. */

/**
 * Tries to get at a process by ptrace, by its memory file, by process_vm_readv and process_vm_writev, and by taking each
 * of its first descriptors. Prints how each went: `ok`, or the error number. `self` tries a child of its own.
 */
export const REACH = `
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
static char words_here[64] = "words of a process";
static void say(const char *how, int good) { printf("%s:%d ", how, good ? 0 : errno); }
int main(int count, char **words) {
  char path[64], copy[64] = "";
  pid_t pid = count > 1 && strcmp(words[1], "self") != 0 ? atoi(words[1]) : fork();
  if (pid == 0) return pause();
  struct iovec here = {copy, sizeof copy}, there = {words_here, sizeof words_here};
  say("read", process_vm_readv(pid, &here, 1, &there, 1, 0) >= 0);
  say("write", process_vm_writev(pid, &here, 1, &there, 1, 0) >= 0);
  snprintf(path, sizeof path, "/proc/%d/mem", pid);
  int memory = open(path, O_RDWR);
  say("mem", memory >= 0);
  int handle = (int)syscall(SYS_pidfd_open, pid, 0), taken = -1;
  for (int fd = 0; fd < 64 && taken < 0; fd++) taken = (int)syscall(SYS_pidfd_getfd, handle, fd, 0);
  say("descriptor", taken >= 0);
  long seized = ptrace(PTRACE_SEIZE, pid, NULL, NULL);
  say("seize", seized >= 0);
  say("attach", ptrace(PTRACE_ATTACH, pid, NULL, NULL) >= 0 || seized >= 0);
  printf("\\n");
  if (count < 2 || strcmp(words[1], "self") == 0) kill(pid, SIGKILL);
  return 0;
}
`;

/** A daemon by the book and beyond: twice forked, a session of its own, no descriptor, no signal heard, another name. */
export const DAEMON = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char **words) {
  if (fork() != 0) return usleep(50000);
  setsid();
  if (fork() != 0) _exit(0);
  for (int signal = 1; signal < 65; signal++) sigaction(signal, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
  syscall(SYS_close_range, 0, ~0U, 0);
  setsid();
  if (fork() == 0) setsid();
  execl("/bin/sleep", "sleep", words[count - 1], (char *)0);
  return 1;
}
`;

/** Prints the numbers of all descriptors that are open beyond the first three. */
export const DESCRIPTORS = `
#include <fcntl.h>
#include <stdio.h>
int main(void) {
  for (int fd = 3; fd < 70000; fd++) if (fcntl(fd, F_GETFD) >= 0) printf("%d ", fd);
  printf("end\\n");
  return 0;
}
`;
