#define _GNU_SOURCE
#include "notify/connects/dial_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "lib/failure.h"

/* Longest time that PID 1 can block in connect(2) when the caller clears O_NONBLOCK meanwhile. */
#define GUARD_US 10000

static void on_alarm(int number) {
  (void)number;
}

void dial_calls_open(void) {
  struct sigaction action = {.sa_handler = on_alarm};
  if (sigaction(SIGALRM, &action, NULL) < 0) fail_world("sockets", "sigaction", errno);
}

/* Connects with an alarm as a guard: another thread of the caller can clear O_NONBLOCK between fcntl(2) and
   connect(2), and SIGALRM, the only unblocked signal, then interrupts the blocked connect. */
static int connect_within(int socket, const struct dial_address *address) {
  const struct itimerval on = {{0, GUARD_US}, {0, GUARD_US}}, off = {{0, 0}, {0, 0}};
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  if (setitimer(ITIMER_REAL, &on, NULL) < 0) return errno;
  sigprocmask(SIG_UNBLOCK, &alarm, NULL);
  int error = connect(socket, (const struct sockaddr *)&address->name, address->length) == 0 ? 0 : errno;
  sigprocmask(SIG_BLOCK, &alarm, NULL);
  setitimer(ITIMER_REAL, &off, NULL);
  return error;
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
  *blocks = (flags & O_NONBLOCK) == 0 && (data->flags & MSG_DONTWAIT) == 0;
  *sent = sendto(socket, data->bytes, data->size, data->flags | MSG_DONTWAIT | MSG_NOSIGNAL,
                 (const struct sockaddr *)&address->name, address->length);
  return *sent < 0 ? errno : 0;
}
