/* Both ends of what network.mjs measures, so that neither costs more than the kernel asks. The server speaks the smallest
   HTTP: what a client says first is read on its way out of a world.

     serve PORT                       `GET /N` is answered with N bytes, `PUT /` at its end with how many came
     download HOST PORT BYTES         seconds from the first SYN to the last byte
     upload HOST PORT BYTES           seconds from the first SYN to the answer
     connect HOST PORT COUNT known    for each connection, one after the other: milliseconds from socket() to the first byte
     connect HOST PORT COUNT asked    the same with the name's resolution
     hold HOST PORT COUNT             how many of COUNT connections, all open at once, were answered
     flood HOST PORT COUNT BYTES      how many of COUNT uploads at once the server says it took whole */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CHUNK (256 * 1024)
#define HEAD_MAX 4096
#define STACK (256 * 1024)
/* A client that waits longer has failed. */
#define PATIENCE_S 20

static char zeros[CHUNK];

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void open_files(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) < 0) err(1, "getrlimit");
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) < 0) err(1, "setrlimit");
}

static int send_all(int fd, long long bytes) {
  while (bytes > 0) {
    ssize_t sent = send(fd, zeros, bytes < CHUNK ? (size_t)bytes : CHUNK, MSG_NOSIGNAL);
    if (sent < 0) return -1;
    bytes -= sent;
  }
  return 0;
}

/* Bytes until `wanted` have come, or the end; -1 when it broke. */
static long long receive(int fd, long long wanted, char *space) {
  long long got = 0;
  while (wanted < 0 || got < wanted) {
    ssize_t count = recv(fd, space, CHUNK, 0);
    if (count < 0) return -1;
    if (count == 0) break;
    got += count;
  }
  return got;
}

/* Reads a request's head; how many bytes of its body came with it, -1 when it is none. */
static long long read_head(int fd, char *head) {
  size_t filled = 0;
  for (;;) {
    ssize_t count = recv(fd, head + filled, HEAD_MAX - 1 - filled, 0);
    if (count <= 0) return -1;
    filled += (size_t)count;
    head[filled] = 0;
    char *end = strstr(head, "\r\n\r\n");
    if (end != NULL) return (long long)filled - (end + 4 - head);
    if (filled == HEAD_MAX - 1) return -1;
  }
}

static void *serve_one(void *argument) {
  int fd = (int)(long)argument;
  char head[HEAD_MAX];
  long long body = read_head(fd, head);
  if (body >= 0 && strncmp(head, "GET /", 5) == 0) {
    /* Open until the client has enough of it. */
    if (send_all(fd, strtoll(head + 5, NULL, 10)) == 0) recv(fd, head, 1, 0);
  } else if (body >= 0) {
    char *space = malloc(CHUNK);
    long long rest = space == NULL ? -1 : receive(fd, -1, space);
    if (rest >= 0) dprintf(fd, "%lld\n", body + rest);
    free(space);
  }
  close(fd);
  return NULL;
}

static void serve(const char *port) {
  pthread_attr_t small;
  int yes = 1;
  struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0) err(1, "socket");
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(listener, (struct sockaddr *)&name, sizeof name) < 0 || listen(listener, 4096) < 0) err(1, "port %s", port);
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, STACK);
  pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
  puts("ready");
  fflush(stdout);
  for (;;) {
    pthread_t thread;
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0 && errno != EINTR && errno != ECONNABORTED) err(1, "accept");
    if (fd >= 0 && pthread_create(&thread, &small, serve_one, (void *)(long)fd) != 0) errx(1, "no thread");
  }
}

static struct addrinfo *resolve(const char *host, const char *port) {
  struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
  struct addrinfo *found;
  int wrong = getaddrinfo(host, port, &hints, &found);
  if (wrong != 0) errx(1, "%s: %s", host, gai_strerror(wrong));
  return found;
}

static int dial(const struct addrinfo *to) {
  struct timeval patience = {.tv_sec = PATIENCE_S};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) err(1, "socket");
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (connect(fd, to->ai_addr, to->ai_addrlen) == 0) return fd;
  close(fd);
  return -1;
}

static int get(int fd, const char *host, long long bytes) {
  return dprintf(fd, "GET /%lld HTTP/1.1\r\nHost: %s\r\n\r\n", bytes, host) > 0 ? 0 : -1;
}

static void transfer(char **words, int is_upload) {
  char *space = malloc(CHUNK);
  char answer[32] = "";
  long long bytes = atoll(words[4]);
  struct addrinfo *to = resolve(words[2], words[3]);
  double begin = now();
  int fd = dial(to);
  if (fd < 0 || space == NULL) err(1, "connect");
  if (is_upload) {
    dprintf(fd, "PUT / HTTP/1.1\r\nHost: %s\r\nContent-Length: %lld\r\n\r\n", words[2], bytes);
    if (send_all(fd, bytes) < 0 || shutdown(fd, SHUT_WR) < 0) err(1, "send");
    if (recv(fd, answer, sizeof answer - 1, 0) <= 0 || atoll(answer) != bytes) errx(1, "the server took '%s'", answer);
  } else if (get(fd, words[2], bytes) < 0 || receive(fd, bytes, space) != bytes) {
    err(1, "receive");
  }
  printf("%.6f\n", now() - begin);
}

static void connect_in_turn(char **words) {
  char byte[16];
  int is_known = strcmp(words[5], "known") == 0;
  struct addrinfo *to = resolve(words[2], words[3]);
  for (int left = atoi(words[4]); left > 0; left--) {
    double begin = now();
    if (!is_known) {
      freeaddrinfo(to);
      to = resolve(words[2], words[3]);
    }
    int fd = dial(to);
    if (fd < 0 || get(fd, words[2], 1) < 0 || recv(fd, byte, sizeof byte, 0) != 1) err(1, "connection");
    printf("%.4f\n", (now() - begin) * 1000);
    close(fd);
  }
}

static void hold(char **words) {
  int count = atoi(words[4]);
  int answered = 0;
  char byte;
  int *open = calloc((size_t)count, sizeof *open);
  struct addrinfo *to = resolve(words[2], words[3]);
  if (open == NULL) err(1, "memory");
  for (int i = 0; i < count; i++) open[i] = dial(to);
  for (int i = 0; i < count; i++) {
    if (open[i] >= 0) get(open[i], words[2], 1);
  }
  for (int i = 0; i < count; i++) answered += open[i] >= 0 && recv(open[i], &byte, 1, 0) == 1;
  /* Still open: an end would be readable. */
  for (int i = 0; i < count; i++) {
    if (open[i] >= 0 && recv(open[i], &byte, 1, MSG_DONTWAIT) >= 0) errx(1, "connection %d has ended early", i);
  }
  printf("%d\n", answered);
}

struct flood {
  const struct addrinfo *to;
  pthread_barrier_t *ready;
  long long bytes;
  int whole;
};

static void *flood_one(void *argument) {
  struct flood *one = argument;
  int fd = dial(one->to);
  pthread_barrier_wait(one->ready);
  char answer[32] = "";
  one->whole = fd >= 0 && send_all(fd, one->bytes) == 0 && shutdown(fd, SHUT_WR) == 0 &&
               recv(fd, answer, sizeof answer - 1, 0) > 0 && atoll(answer) == one->bytes;
  return NULL;
}

static void flood(char **words) {
  int count = atoi(words[4]);
  int whole = 0;
  pthread_barrier_t ready;
  pthread_t *threads = calloc((size_t)count, sizeof *threads);
  struct flood *floods = calloc((size_t)count, sizeof *floods);
  struct addrinfo *to = resolve(words[2], words[3]);
  if (threads == NULL || floods == NULL) err(1, "memory");
  pthread_barrier_init(&ready, NULL, (unsigned)count);
  for (int i = 0; i < count; i++) {
    floods[i] = (struct flood){.to = to, .ready = &ready, .bytes = atoll(words[5])};
    if (pthread_create(&threads[i], NULL, flood_one, &floods[i]) != 0) errx(1, "no thread");
  }
  for (int i = 0; i < count; i++) {
    pthread_join(threads[i], NULL);
    whole += floods[i].whole;
  }
  printf("%d\n", whole);
}

int main(int count, char **words) {
  signal(SIGPIPE, SIG_IGN);
  open_files();
  const char *what = count > 1 ? words[1] : "";
  if (strcmp(what, "serve") == 0 && count == 3) serve(words[2]);
  else if (strcmp(what, "download") == 0 && count == 5) transfer(words, 0);
  else if (strcmp(what, "upload") == 0 && count == 5) transfer(words, 1);
  else if (strcmp(what, "connect") == 0 && count == 6) connect_in_turn(words);
  else if (strcmp(what, "hold") == 0 && count == 5) hold(words);
  else if (strcmp(what, "flood") == 0 && count == 6) flood(words);
  else errx(2, "unknown words: see the source");
  return 0;
}
