/* Stops the reports of a program that installs a seccomp filter: the filter may kill the program for opening
   a socket. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <sys/prctl.h>

#include "real.h"
#include "report.h"

/* All arguments of prctl(2) have this type; the kernel ignores surplus arguments. */
SHOWN int prctl(int option, ...) {
  unsigned long arguments[4];
  va_list rest;
  va_start(rest, option);
  for (int i = 0; i < 4; i++) arguments[i] = va_arg(rest, unsigned long);
  va_end(rest);
  if (option == PR_SET_SECCOMP) report_no_more();
  return REAL(prctl)(option, arguments[0], arguments[1], arguments[2], arguments[3]);
}

/* libseccomp's own call does not reach the wrapper of prctl(2). */
SHOWN int seccomp_load(const void *context) {
  report_no_more();
  return REAL(seccomp_load)(context);
}
