#define _GNU_SOURCE
#include "run/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "lib/commands.h"
#include "lib/watch.h"

struct input {
  int fd; /* the write end */
  size_t length, written;
  uint8_t bytes[];
};

/* Writes as much as fits. A pipe without reader counts as fully written: its command does not want more.
   SIGPIPE is blocked in PID 1. */
static size_t write_some(int fd, const uint8_t *data, size_t length) {
  size_t written = 0;
  while (written < length) {
    ssize_t count = write(fd, data + written, length - written);
    if (count > 0) {
      written += (size_t)count;
    } else if (errno == EAGAIN) {
      return written;
    } else if (errno != EINTR) {
      return length;
    }
  }
  return written;
}

/* Copies unwritten bytes. NULL with errno. */
static struct input *keep(int fd, const uint8_t *data, size_t length) {
  struct input *rest = malloc(sizeof *rest + length);
  if (rest == NULL) return NULL;
  *rest = (struct input){.fd = fd, .length = length};
  memcpy(rest->bytes, data, length);
  return rest;
}

int input_open(const uint8_t *data, size_t length, struct input **rest) {
  int ends[2];
  *rest = NULL;
  if (pipe2(ends, O_CLOEXEC) < 0) return -1;
  /* Only the write end is non-blocking: the command's reads block as usual. */
  if (fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0) {
    size_t written = write_some(ends[1], data, length);
    if (written == length) {
      close(ends[1]);
      return ends[0];
    }
    *rest = keep(ends[1], data + written, length - written);
    if (*rest != NULL) return ends[0];
  }
  int error = errno;
  close(ends[0]);
  close(ends[1]);
  errno = error;
  return -1;
}

void input_watch(struct command *command, struct input *rest) {
  command->input = rest;
  if (rest != NULL) watch_add(rest->fd, EPOLLOUT, SOURCE_STDIN, command->id);
}

void input_pump(struct command *command) {
  struct input *rest = command->input;
  if (rest == NULL) return;
  rest->written += write_some(rest->fd, rest->bytes + rest->written, rest->length - rest->written);
  if (rest->written < rest->length) return;
  command->input = NULL;
  input_drop(rest);
}

void input_drop(struct input *rest) {
  if (rest == NULL) return;
  /* No other process has the write end, so closing also ends its epoll watch. */
  close(rest->fd);
  free(rest);
}
