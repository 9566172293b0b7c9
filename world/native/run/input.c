#define _GNU_SOURCE
#include "run/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "lib/channel.h"
#include "lib/commands.h"
#include "lib/failure.h"
#include "lib/fields.h"
#include "lib/frames.h"
#include "lib/watch.h"
#include "run/terminal.h"

/* Beyond the window: the end-of-file characters of a terminal, which wait once at most. The broker counts them as taken when they
   have been written, so it may send as many bytes too early. */
#define END_BYTES 2
#define ROOM (FRAME_INPUT_WINDOW + END_BYTES)

struct input {
  int fd; /* the write end, or the terminal's master; -1: nobody reads */
  bool stream;   /* INPUT frames may follow */
  bool terminal;
  bool watched;
  bool ending;  /* end-of-file characters wait */
  bool in_line; /* the last byte typed at the terminal ended no line */
  size_t length, written;
  uint8_t bytes[];
};

/* Writes as much as fits. A pipe or terminal without reader counts as fully written: its command does not want
   more. SIGPIPE is blocked in PID 1. */
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

/* Allocates an input with room for `room` bytes. NULL with errno. */
static struct input *make(int fd, bool stream, size_t room) {
  struct input *input = malloc(sizeof *input + room);
  if (input == NULL) return NULL;
  *input = (struct input){.fd = fd, .stream = stream};
  return input;
}

static int give_up(const int ends[2]) {
  int error = errno;
  close(ends[0]);
  close(ends[1]);
  errno = error;
  return -1;
}

/* Opens a pipe whose write end alone is non-blocking: the command's reads block as usual. */
static int open_pipe(int ends[2]) {
  if (pipe2(ends, O_CLOEXEC) < 0) return -1;
  return fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0 ? 0 : give_up(ends);
}

int input_open(const uint8_t *data, size_t length, struct input **rest) {
  int ends[2];
  *rest = NULL;
  if (open_pipe(ends) < 0) return -1;
  size_t written = write_some(ends[1], data, length);
  if (written == length) {
    close(ends[1]);
    return ends[0];
  }
  *rest = make(ends[1], false, length - written);
  if (*rest == NULL) return give_up(ends);
  (*rest)->length = length - written;
  memcpy((*rest)->bytes, data + written, length - written);
  return ends[0];
}

int input_open_stream(struct input **stream) {
  int ends[2];
  if (open_pipe(ends) < 0) return -1;
  *stream = make(ends[1], true, ROOM);
  return *stream == NULL ? give_up(ends) : ends[0];
}

struct input *input_to_terminal(int master) {
  /* A descriptor of its own: outputs and input are watched apart. */
  int fd = fcntl(master, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return NULL;
  struct input *input = make(fd, true, ROOM);
  if (input == NULL) {
    close(fd);
    errno = ENOMEM;
    return NULL;
  }
  input->terminal = true;
  return input;
}

void input_watch(struct command *command, struct input *input) {
  command->input = input;
  if (input == NULL || input->stream) return;
  watch_add(input->fd, EPOLLOUT, SOURCE_STDIN, command->id);
  input->watched = true;
}

/* Closes the write end. The terminal's open file lives on in the outputs' descriptor, so its watch must go first. */
static void close_end(struct input *input) {
  if (input->fd < 0) return;
  if (input->watched) watch_remove(input->fd);
  close(input->fd);
  input->watched = false;
  input->fd = -1;
}

/* Watches for room, once per call: a reader's end would be reported without end. */
static void await_room(struct command *command) {
  struct input *input = command->input;
  uint32_t events = EPOLLOUT | (input->stream ? EPOLLONESHOT : 0);
  if (input->watched) watch_change(input->fd, events, SOURCE_STDIN, command->id);
  else watch_add(input->fd, events, SOURCE_STDIN, command->id);
  input->watched = true;
}

static void tell_taken(const struct command *command, size_t count) {
  uint8_t number[8];
  write_u64(number, count);
  if (count > 0) channel_send(FRAME_INPUT_TAKEN, command->id, number, sizeof number);
}

void input_pump(struct command *command, uint32_t events) {
  struct input *input = command->input;
  if (input == NULL || input->fd < 0) return;
  bool stream = input->stream;
  size_t count = write_some(input->fd, input->bytes + input->written, input->length - input->written);
  /* A terminal that nobody has open reports its end without end, and takes nothing. */
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) count = input->length - input->written;
  input->written += count;
  bool over = input->written == input->length;
  if (!over) await_room(command);
  else if (!input->stream && !input->terminal) close_end(input);
  if (over) {
    input->length = input->written = 0;
    input->ending = false;
  }
  if (stream) tell_taken(command, count);
}

static void append(struct input *input, const uint8_t *data, size_t length) {
  if (input->length + length > ROOM) {
    memmove(input->bytes, input->bytes + input->written, input->length - input->written);
    input->length -= input->written;
    input->written = 0;
  }
  memcpy(input->bytes + input->length, data, length);
  input->length += length;
}

void input_add(const struct frame *frame) {
  struct command *command = command_find(frame->id);
  if (command == NULL) return;
  struct input *input = command->input;
  if (input == NULL || !input->stream || input->fd < 0) return tell_taken(command, frame->length);
  if (frame->length == 0) return;
  size_t waiting = input->length - input->written;
  if (frame->length > ROOM - waiting) fail_protocol("INPUT: beyond its window");
  append(input, frame->payload, frame->length);
  input->in_line = frame->payload[frame->length - 1] != '\n';
  input_pump(command, 0);
}

void input_end(const struct frame *frame) {
  if (frame->length != 0) fail_protocol("INPUT_END: has a payload");
  struct command *command = command_find(frame->id);
  struct input *input = command == NULL ? NULL : command->input;
  if (input == NULL || !input->stream || input->fd < 0) return;
  if (input->terminal) {
    int character = terminal_end_character(input->fd);
    uint8_t ends[2] = {(uint8_t)character, (uint8_t)character};
    /* In a line that has begun, the first one only hands the line over. */
    size_t count = input->in_line ? END_BYTES : 1;
    if (character < 0 || input->ending || input->length - input->written + count > ROOM) return;
    append(input, ends, count);
    input->ending = true;
    input->in_line = false;
  } else {
    input->stream = false;
  }
  input_pump(command, 0);
}

void input_drop(struct input *input) {
  if (input == NULL) return;
  close_end(input);
  free(input);
}
