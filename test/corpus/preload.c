/*
 * Loaded into the shells that run many texts: a program that would only be written down is written down here, in the child
 * that was about to become it, which saves the kernel the work of an execve. Programs that do something become themselves.
 */
#include "calls.h"

#include <sys/syscall.h>

int execve(const char *path, char *const words[], char *const variables[]) {
  if (is_real(path) || access(path, X_OK) < 0) return (int)syscall(SYS_execve, path, words, variables);
  int count = 0;
  while (words[count] != NULL) count++;
  record(path, count, words);
  _exit(0);
}
