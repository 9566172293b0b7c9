#define _GNU_SOURCE
#include "probe/probe_dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* Time until dropped packets, unlike refused ones, fail with EINPROGRESS (socket(7), SO_SNDTIMEO). */
#define PATIENCE_SECONDS 2

static long microseconds_since(const struct timespec *begun) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (now.tv_sec - begun->tv_sec) * 1000000 + (now.tv_nsec - begun->tv_nsec) / 1000;
}

static int failed(const char *step, int error, long microseconds) {
  printf("failed %s %d %ld\n", step, error, microseconds);
  return 1;
}

int probe_dial(const char *address, const char *port) {
  struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons((uint16_t)strtoul(port, NULL, 10))};
  struct timeval patience = {.tv_sec = PATIENCE_SECONDS};
  struct timespec begun;
  if (inet_pton(AF_INET, address, &name.sin_addr) != 1) return failed("address", EINVAL, 0);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return failed("socket", errno, 0);
  if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) < 0) return failed("patience", errno, 0);
  clock_gettime(CLOCK_MONOTONIC, &begun);
  int result = connect(fd, (struct sockaddr *)&name, sizeof name);
  int error = errno;
  long taken = microseconds_since(&begun);
  if (result < 0) {
    close(fd);
    return failed("connect", error, taken);
  }
  /* Wait until the other side closes, so that a search for the connection's owner finds this process. */
  char byte;
  if (read(fd, &byte, sizeof byte) < 0) return failed("read", errno, taken);
  printf("ok %ld\n", taken);
  return close(fd) < 0;
}
