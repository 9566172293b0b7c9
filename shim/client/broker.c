#define _GNU_SOURCE
#include "broker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "descriptors.h"

/* Bytes of the longest accepted answer; the broker sends none as long. */
#define MOST_BODY (4UL << 20)

/* Timeout of one send(2). After a partial send the rest gets a new timeout. */
#define SEND_SECONDS 5

bool broker_open(struct broker *broker, const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  *broker = (struct broker){.fd = -1};
  struct timeval patience = {.tv_sec = SEND_SECONDS};
  if (*path == 0 || strlen(path) >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return false;
  }
  memcpy(address.sun_path, path, strlen(path) + 1);
  broker->fd = above_standard(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (broker->fd < 0) return false;
  /* The timeout holds for connect(2) too, which waits while a hanging broker's queue is full. */
  setsockopt(broker->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (connect(broker->fd, (struct sockaddr *)&address, sizeof address) == 0) return true;
  int error = errno;
  broker_close(broker);
  errno = error;
  return false;
}

bool broker_write(struct broker *broker, const char *bytes, size_t length) {
  while (length > 0) {
    ssize_t sent = send(broker->fd, bytes, length, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes += sent;
    length -= (size_t)sent;
  }
  return true;
}

bool broker_send(struct broker *broker, const char *path, const struct buffer *body) {
  struct buffer all = {0};
  char head[192];
  snprintf(head, sizeof head,
           "POST %s HTTP/1.1\r\nhost: substrate\r\ncontent-type: application/json\r\ncontent-length: %zu\r\n\r\n", path,
           body->length);
  buffer_text(&all, head);
  buffer_add(&all, body->data, body->length);
  bool sent = !body->failed && !all.failed && broker_write(broker, all.data, all.length);
  buffer_free(&all);
  return sent;
}

bool broker_get(struct broker *broker, const char *path) {
  char head[128];
  int length = snprintf(head, sizeof head, "GET %s HTTP/1.1\r\nhost: substrate\r\n\r\n", path);
  return (size_t)length < sizeof head && broker_write(broker, head, (size_t)length);
}

static long now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits for more bytes. False at the end of the connection, on timeout, and on an oversized answer. */
static bool come_more(struct broker *broker, long until) {
  char piece[4096];
  ssize_t got;
  do {
    long left = until - now_ms();
    if (left <= 0) return false;
    struct timeval patience = {.tv_sec = left / 1000, .tv_usec = left % 1000 * 1000};
    setsockopt(broker->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    got = recv(broker->fd, piece, sizeof piece, 0);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) return false;
  buffer_add(&broker->come, piece, (size_t)got);
  return !broker->come.failed && broker->come.length < MOST_BODY;
}

static long content_length(const char *head, const char *end) {
  static const char NAME[] = "\r\ncontent-length:";
  const char *at = strcasestr(head, NAME);
  return at == NULL || at >= end ? -1 : strtol(at + strlen(NAME), NULL, 10);
}

struct answer broker_answer(struct broker *broker, int seconds) {
  struct answer none = {0, NULL, NULL};
  long until = now_ms() + seconds * 1000L;
  char *end = NULL;
  while (broker->come.data == NULL || (end = strstr(broker->come.data, "\r\n\r\n")) == NULL) {
    if (!come_more(broker, until)) return none;
  }
  int status = 0;
  if (sscanf(broker->come.data, "HTTP/1.1 %3d", &status) != 1) return none;
  /* An interim answer (1xx) has no body (RFC 9110, 15.2). */
  long length = status < 200 ? 0 : content_length(broker->come.data, end);
  if (length < 0 || (unsigned long)length > MOST_BODY) return none;
  size_t begin = (size_t)(end - broker->come.data) + 4, whole = begin + (size_t)length;
  while (broker->come.length < whole) {
    if (!come_more(broker, until)) return none;
  }
  struct answer answer = {status, strndup(broker->come.data, begin), strndup(broker->come.data + begin, (size_t)length)};
  memmove(broker->come.data, broker->come.data + whole, broker->come.length - whole);
  broker->come.length -= whole;
  broker->come.data[broker->come.length] = 0;
  return answer.head == NULL || answer.body == NULL ? none : answer;
}

void broker_close(struct broker *broker) {
  if (broker->fd >= 0) close(broker->fd);
  broker->fd = -1;
  buffer_free(&broker->come);
}
