#define _GNU_SOURCE
#include "network/node_channel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Lines sent are short; the longest contains nft's error message. */
#define SENT_MAX 2048
/* Pause when too many sockets are in flight to brokers (ETOOMANYREFS), nanoseconds. */
#define CROWDED_NS 2000000

static char buffer[NODE_LINE_MAX];
static size_t filled;
static size_t taken; /* bytes of lines already returned */

void node_open(void) {
  struct stat status;
  if (fstat(NODE_CHANNEL_FD, &status) < 0 || !S_ISSOCK(status.st_mode)) _exit(1);
  if (fcntl(NODE_CHANNEL_FD, F_SETFD, FD_CLOEXEC) < 0) _exit(1);
}

static void wait_for(short events) {
  struct pollfd state = {.fd = NODE_CHANNEL_FD, .events = events};
  while (poll(&state, 1, -1) < 0 && errno == EINTR) continue;
}

/* Returns the bytes sent. The descriptor goes with the first byte. */
static size_t send_some(const char *text, size_t length, int fd) {
  union {
    char space[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
  } control = {.space = {0}};
  struct iovec part = {.iov_base = (char *)text, .iov_len = length};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (fd >= 0) {
    message.msg_control = control.space;
    message.msg_controllen = sizeof control.space;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  for (;;) {
    ssize_t sent = sendmsg(NODE_CHANNEL_FD, &message, MSG_NOSIGNAL);
    if (sent > 0) return (size_t)sent;
    if (sent == 0 || errno == EINTR) continue;
    if (errno == EAGAIN) {
      wait_for(POLLOUT);
    } else if (errno == ETOOMANYREFS || errno == ENOMEM || errno == ENOBUFS) {
      struct timespec pause = {.tv_nsec = CROWDED_NS};
      nanosleep(&pause, NULL);
    } else {
      _exit(0);
    }
  }
}

void node_send(int fd, const char *format, ...) {
  char line[SENT_MAX];
  va_list values;
  va_start(values, format);
  int length = vsnprintf(line, sizeof line - 1, format, values);
  va_end(values);
  if (length < 0 || (size_t)length >= sizeof line - 1) _exit(1);
  line[length++] = '\n';
  size_t sent = send_some(line, (size_t)length, fd);
  while (sent < (size_t)length) sent += send_some(line + sent, (size_t)length - sent, -1);
}

void node_receive(void) {
  memmove(buffer, buffer + taken, filled - taken);
  filled -= taken;
  taken = 0;
  /* Longer than any line of the broker. */
  if (filled == sizeof buffer) _exit(1);
  ssize_t count = recv(NODE_CHANNEL_FD, buffer + filled, sizeof buffer - filled, MSG_DONTWAIT);
  if (count > 0) filled += (size_t)count;
  else if (count == 0 || (errno != EAGAIN && errno != EINTR)) _exit(0);
}

char *node_next_line(void) {
  char *line = buffer + taken;
  char *end = memchr(line, '\n', filled - taken);
  if (end == NULL) return NULL;
  *end = 0;
  taken = (size_t)(end + 1 - buffer);
  return line;
}

char *node_value(char *line, const char *name) {
  size_t length = strlen(name);
  if (strncmp(line, "{\"", 2) != 0 || strncmp(line + 2, name, length) != 0) return NULL;
  char *value = line + 2 + length;
  if (strncmp(value, "\":\"", 3) != 0) return NULL;
  value += 3;
  size_t total = strlen(value);
  if (total < 2 || strcmp(value + total - 2, "\"}") != 0) _exit(1);
  value[total - 2] = 0;
  if (strpbrk(value, "\"\\") != NULL) _exit(1);
  return value;
}

void node_clean(char *text) {
  for (char *at = text; *at != 0; at++) {
    if ((unsigned char)*at < ' ' || (unsigned char)*at > '~' || *at == '"' || *at == '\\') *at = '?';
  }
}
