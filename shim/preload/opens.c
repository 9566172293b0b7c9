/* Wrappers of calls that open files for writing: all forms of open(2), and streams. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "real.h"
#include "report.h"

static bool writes(int flags) {
  if ((flags & O_PATH) == O_PATH) return false;
  return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0;
}

static void report_open(int folder, const char *path, int flags) {
  if (writes(flags)) report_path(REPORT_WRITE, folder, path);
}

/* O_TMPFILE includes the bit of O_DIRECTORY, so compare all bits. */
static bool has_mode(int flags) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

#define MODE_OF(flags, mode)               \
  mode_t mode = 0;                         \
  if (has_mode(flags)) {                   \
    va_list rest;                          \
    va_start(rest, flags);                 \
    mode = (mode_t)va_arg(rest, unsigned); \
    va_end(rest);                          \
  }

SHOWN int open(const char *path, int flags, ...) {
  MODE_OF(flags, mode)
  report_open(AT_FDCWD, path, flags);
  return REAL(open)(path, flags, mode);
}

SHOWN int open64(const char *path, int flags, ...) {
  MODE_OF(flags, mode)
  report_open(AT_FDCWD, path, flags);
  return REAL(open64)(path, flags, mode);
}

SHOWN int openat(int folder, const char *path, int flags, ...) {
  MODE_OF(flags, mode)
  report_open(folder, path, flags);
  return REAL(openat)(folder, path, flags, mode);
}

SHOWN int openat64(int folder, const char *path, int flags, ...) {
  MODE_OF(flags, mode)
  report_open(folder, path, flags);
  return REAL(openat64)(folder, path, flags, mode);
}

SHOWN int __open_2(const char *path, int flags) {
  report_open(AT_FDCWD, path, flags);
  return REAL(__open_2)(path, flags);
}

SHOWN int __open64_2(const char *path, int flags) {
  report_open(AT_FDCWD, path, flags);
  return REAL(__open64_2)(path, flags);
}

SHOWN int __openat_2(int folder, const char *path, int flags) {
  report_open(folder, path, flags);
  return REAL(__openat_2)(folder, path, flags);
}

SHOWN int __openat64_2(int folder, const char *path, int flags) {
  report_open(folder, path, flags);
  return REAL(__openat64_2)(folder, path, flags);
}

SHOWN int creat(const char *path, mode_t mode) {
  report_path(REPORT_WRITE, AT_FDCWD, path);
  return REAL(creat)(path, mode);
}

SHOWN int creat64(const char *path, mode_t mode) {
  report_path(REPORT_WRITE, AT_FDCWD, path);
  return REAL(creat64)(path, mode);
}

static void report_stream(const char *path, const char *mode) {
  if (mode[0] == 'w' || mode[0] == 'a' || strchr(mode, '+') != NULL) report_path(REPORT_WRITE, AT_FDCWD, path);
}

SHOWN FILE *fopen(const char *path, const char *mode) {
  report_stream(path, mode);
  return REAL(fopen)(path, mode);
}

SHOWN FILE *fopen64(const char *path, const char *mode) {
  report_stream(path, mode);
  return REAL(fopen64)(path, mode);
}

/* A NULL path reopens the same file in another mode, without a second report. */
SHOWN FILE *freopen(const char *path, const char *mode, FILE *stream) {
  report_stream(path, mode);
  return REAL(freopen)(path, mode, stream);
}

SHOWN FILE *freopen64(const char *path, const char *mode, FILE *stream) {
  report_stream(path, mode);
  return REAL(freopen64)(path, mode, stream);
}
