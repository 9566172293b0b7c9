#define _GNU_SOURCE
#include "notify/connects/dial_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "lib/failure.h"

/* Longest time that PID 1 can block in connect(2) or close(2). */
#define GUARD_US 10000

static void on_alarm(int number) {
  (void)number;
}

void dial_calls_open(void) {
  struct sigaction action = {.sa_handler = on_alarm};
  if (sigaction(SIGALRM, &action, NULL) < 0) fail_world("sockets", "sigaction", errno);
}

/* From here on SIGALRM, the only unblocked signal, interrupts a call that blocks. */
static void guard_begin(void) {
  const struct itimerval on = {{0, GUARD_US}, {0, GUARD_US}};
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  if (setitimer(ITIMER_REAL, &on, NULL) < 0) fail_world("sockets", "setitimer", errno);
  sigprocmask(SIG_UNBLOCK, &alarm, NULL);
}

static void guard_end(void) {
  const struct itimerval off = {{0, 0}, {0, 0}};
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  sigprocmask(SIG_BLOCK, &alarm, NULL);
  setitimer(ITIMER_REAL, &off, NULL);
}

/* Another thread of the caller can clear O_NONBLOCK between fcntl(2) and connect(2). */
static int connect_within(int socket, const struct dial_address *address) {
  guard_begin();
  int error = connect(socket, (const struct sockaddr *)&address->name, address->length) == 0 ? 0 : errno;
  guard_end();
  return error;
}

/* Once the caller has closed its own descriptor, the last close(2) waits for unsent data (SO_LINGER, socket(7)), also
   where O_NONBLOCK is set. After an interruption the kernel goes on without PID 1. */
void dial_close(int socket) {
  int error = errno;
  guard_begin();
  close(socket);
  guard_end();
  errno = error;
}

/* Sets O_NONBLOCK on a blocking socket for the duration of the call. */
int dial_connect(int socket, const struct dial_address *address, bool *blocks) {
  int flags = fcntl(socket, F_GETFL);
  if (flags < 0) return errno;
  *blocks = (flags & O_NONBLOCK) == 0;
  if (*blocks && fcntl(socket, F_SETFL, flags | O_NONBLOCK) < 0) return errno;
  int error = connect_within(socket, address);
  if (*blocks && fcntl(socket, F_SETFL, flags) < 0) return errno;
  return error;
}

int dial_send(int socket, const struct dial_address *address, const struct dial_data *data, int64_t *sent, bool *blocks) {
  int flags = fcntl(socket, F_GETFL);
  if (flags < 0) return errno;
  /* The kernel would send PID 1's pages, with what PID 1 writes there later. Programs that get this errno copy instead
     (Documentation/networking/msg_zerocopy.rst). */
  if ((data->flags & MSG_ZEROCOPY) != 0) return ENOBUFS;
  *blocks = (flags & O_NONBLOCK) == 0 && (data->flags & MSG_DONTWAIT) == 0;
  *sent = sendto(socket, data->bytes, data->size, data->flags | MSG_DONTWAIT | MSG_NOSIGNAL,
                 (const struct sockaddr *)&address->name, address->length);
  return *sent < 0 ? errno : 0;
}
