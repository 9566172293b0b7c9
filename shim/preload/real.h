/* The functions behind the wrappers, in the C library or another library in between. */
#ifndef SUBSTRATE_PRELOAD_REAL_H
#define SUBSTRATE_PRELOAD_REAL_H

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Forms of open(2) without a mode under _FORTIFY_SOURCE; undeclared otherwise. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int folder, const char *path, int flags);
int __openat64_2(int folder, const char *path, int flags);
/* From libseccomp, which few programs load. */
int seccomp_load(const void *context);

#define REAL_FUNCTIONS(X) \
  X(execve) X(execv) X(execvp) X(execvpe) X(fexecve) X(execveat) X(posix_spawn) X(posix_spawnp) X(system) X(popen) \
  X(open) X(open64) X(openat) X(openat64) X(__open_2) X(__open64_2) X(__openat_2) X(__openat64_2) X(creat) X(creat64) \
  X(fopen) X(fopen64) X(freopen) X(freopen64) X(connect) X(unlink) X(unlinkat) X(remove) X(rmdir) X(rename) X(renameat) \
  X(renameat2) X(prctl) X(seccomp_load)

#define REAL_NUMBER(name) REAL_##name,
enum real_number { REAL_FUNCTIONS(REAL_NUMBER) REAL_COUNT };

/* Never NULL: for a function missing in the C library, returns a function failing with ENOSYS. */
void *real_function(enum real_number number);

#define REAL(name) ((__typeof__(name) *)real_function(REAL_##name))

#endif
