/* Wrapper of connect(2). */
#define _GNU_SOURCE
#include "real.h"
#include "report.h"

SHOWN int connect(int socket, __CONST_SOCKADDR_ARG address, socklen_t length) {
  report_bytes(REPORT_CONNECT, address.__sockaddr__, length);
  return REAL(connect)(socket, address, length);
}
