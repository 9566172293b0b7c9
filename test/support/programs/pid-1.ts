/** Programs that aim at PID 1 of their world. */

/**
 * `limit PID`: sets a limit of processor time for PID, makes PID 1 work for more than that by calls that it is told of, and leaves
 * a denied name behind (argument 2) each time round. Prints the error number of the first call, 0 if it worked.
 */
export const LIMIT = `
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
int main(int count, char **words) {
  const struct rlimit second = {1, 1};
  char path[64];
  int failed = prlimit(atoi(words[1]), RLIMIT_CPU, &second, NULL) < 0 ? errno : 0;
  printf("%d\\n", failed);
  fflush(stdout);
  time_t end = time(NULL) + 6;
  for (int round = 0; failed == 0 && count > 2 && time(NULL) < end; round++) {
    for (int i = 0; i < 1000; i++) close(open("touched", O_CREAT | O_WRONLY, 0600));
    snprintf(path, sizeof path, "d%d", round);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "d%d/%s", round, words[2]);
    close(open(path, O_CREAT | O_WRONLY, 0600));
  }
  return 0;
}
`;

/** A TCP connection to oneself whose receiver reads nothing yet; \`from\` and \`to\` are its ends. */
const PAIR = `
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
static struct sockaddr_in name = {.sin_family = AF_INET};
static socklen_t length = sizeof name;
static int listener, from, to;
static char bytes[100000];
static void connect_both(void) {
  int room = 150000;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  listener = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  bind(listener, (void *)&name, sizeof name);
  listen(listener, 1);
  getsockname(listener, (void *)&name, &length);
  from = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(from, (void *)&name, sizeof name) < 0) exit(2);
  to = accept(listener, NULL, NULL);
}
static ssize_t send_named(int flags) { return sendto(from, bytes, sizeof bytes, flags, (void *)&name, sizeof name); }
`;

/**
 * Leaves PID 1 with the last descriptor of a lingering socket: a thread of a child waits in sendto(2), its other thread closes the
 * descriptor, and the child is killed. Then waits for argument 1 seconds, with the connection's other end unread.
 */
export const LINGERER = `${PAIR}
static void *sender(void *unused) {
  while (send_named(0) > 0) continue;
  return unused;
}
int main(int count, char **words) {
  pthread_t thread;
  struct linger hour = {1, 3600};
  connect_both();
  setsockopt(from, SOL_SOCKET, SO_LINGER, &hour, sizeof hour);
  if (fork() == 0) {
    close(to);
    pthread_create(&thread, NULL, sender, NULL);
    sleep(1);
    dup2(listener, from);
    usleep(100000);
    kill(getpid(), SIGKILL);
  }
  close(from);
  puts("waits");
  fflush(stdout);
  sleep(count > 1 ? atoi(words[1]) : 0);
  return 0;
}
`;

/** Sends with an address and flags (argument 1), reads two seconds later, and prints bytes sent, then bytes that it did not send. */
export const STRANGER = `${PAIR}
int main(int count, char **words) {
  int one = 1, room = 4 << 20, flags = count > 1 ? strtol(words[1], NULL, 0) : 0;
  size_t sent = 0, strange = 0;
  ssize_t got;
  memset(bytes, 'A', sizeof bytes);
  connect_both();
  setsockopt(from, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one);
  setsockopt(from, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  for (int i = 0; i < 20 && (got = send_named(flags | MSG_DONTWAIT)) > 0; i++) sent += got;
  sleep(2);
  shutdown(from, SHUT_WR);
  while ((got = read(to, bytes, sizeof bytes)) > 0) {
    for (ssize_t i = 0; i < got; i++) strange += bytes[i] != 'A';
  }
  printf("%zu %zu\\n", sent, strange);
  return 0;
}
`;

/** Takes a write lease (F_WRLCK) on each file, prints the error numbers, and keeps them for ten seconds if all were given. */
export const LEASES = `
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
int main(int count, char **words) {
  int failed = 0;
  signal(SIGIO, SIG_IGN);
  for (int i = 1; i < count; i++) {
    int file = open(words[i], O_RDONLY);
    int error = file < 0 || fcntl(file, F_SETLEASE, F_WRLCK) < 0 ? errno : 0;
    struct flock lock = {.l_type = F_RDLCK};
    if (fcntl(file, F_SETLK, &lock) < 0) return 2;
    failed |= error;
    printf("%d\\n", error);
  }
  fflush(stdout);
  if (failed == 0) sleep(10);
  return 0;
}
`;
