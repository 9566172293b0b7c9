/* A program that takes a filter of system calls says nothing from then on: the filter may end it for a socket. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <sys/prctl.h>

#include "real.h"
#include "report.h"

/* All its arguments are of this type (prctl(2)); more than a call has are not looked at by the kernel. */
SHOWN int prctl(int option, ...) {
  unsigned long arguments[4];
  va_list rest;
  va_start(rest, option);
  for (int i = 0; i < 4; i++) arguments[i] = va_arg(rest, unsigned long);
  va_end(rest);
  if (option == PR_SET_SECCOMP) report_no_more();
  return REAL(prctl)(option, arguments[0], arguments[1], arguments[2], arguments[3]);
}

/* Of libseccomp, whose own call is not seen. */
SHOWN int seccomp_load(const void *context) {
  report_no_more();
  return REAL(seccomp_load)(context);
}
