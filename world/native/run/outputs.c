#define _GNU_SOURCE
#include "run/outputs.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib/channel.h"
#include "lib/failure.h"
#include "lib/frames.h"
#include "lib/watch.h"

#define CHUNK 65536

/* More than a terminal holds: 64 KiB on their way (TTYB_DEFAULT_MEM_LIMIT, drivers/tty/tty_buffer.c) and one page. How much it holds
   cannot be asked: FIONREAD does not count what is on its way. */
#define TERMINAL_HOLDS (128 * 1024)

static uint8_t chunk[CHUNK];

static enum source source_of(int which) {
  return which == 0 ? SOURCE_STDOUT : SOURCE_STDERR;
}

static bool may_read(const struct command *command) {
  return command->credit > 0 || command->discard;
}

/* Uses one-shot events: each event disarms its pipe. A pipe at its end can stay open (closing takes time, and
   must not delay a command's end), and a pipe without credit cannot spin. A terminal that no process has open reports
   its end without end: its next event is one edge, the write of whoever opened it again. */
static uint32_t events_of(enum armed armed) {
  if (armed == ARMED_FOR_OPENING) return EPOLLIN | EPOLLET;
  return EPOLLONESHOT | (armed == ARMED_FOR_DATA ? EPOLLIN : 0);
}

void outputs_be_terminal(struct command *command, int master) {
  for (int i = 0; i < 2; i++) close(command->outputs[i].fd);
  command->terminal = true;
  command->outputs[0].fd = master;
  command->outputs[1].fd = -1;
  command->outputs[1].eof = true;
}

void outputs_watch(struct command *command) {
  enum armed armed = may_read(command) ? ARMED_FOR_DATA : ARMED_FOR_END;
  for (int i = 0; i < 2; i++) {
    if (command->outputs[i].eof) continue;
    command->outputs[i].armed = armed;
    watch_add(command->outputs[i].fd, events_of(armed), source_of(i), command->id);
  }
}

/* Arms the pipes. A pipe without credit is not read, but its end must still be seen: epoll always reports a
   hang-up. */
static void arm(struct command *command) {
  for (int i = 0; i < 2; i++) {
    struct output *output = &command->outputs[i];
    enum armed wanted = !may_read(command) ? ARMED_FOR_END : output->shut ? ARMED_FOR_OPENING : ARMED_FOR_DATA;
    if (output->eof || output->armed == wanted || (wanted == ARMED_FOR_END && output->hung_up)) continue;
    output->armed = wanted;
    watch_change(output->fd, events_of(wanted), source_of(i), command->id);
  }
}

static void finish(struct output *output) {
  output->eof = true;
  output->owed = 0;
}

/* Closes an unreadable pipe: the command gets EPIPE instead of waiting for a reader for ever. A terminal's input may have the
   file open too, so the watch goes first. */
static void give_up(struct output *output) {
  watch_remove(output->fd);
  close(output->fd);
  output->fd = -1;
  finish(output);
}

/* A terminal that no process has open (EIO) can be opened again by its name, by a script that asks for a password, while its
   command runs. */
static bool may_open_again(const struct command *command) {
  return command->terminal && !command->ended;
}

/* Checks a pipe without credit: no writer is left, and the pipe is empty. */
static void look_for_end(const struct command *command, struct output *output) {
  struct pollfd state = {.fd = output->fd, .events = POLLIN};
  if (poll(&state, 1, 0) < 0) fail_world("poll", "output", errno);
  if ((state.revents & POLLHUP) == 0) return;
  output->hung_up = true;
  /* Reading may begin again after an edge that nobody has used. */
  output->shut = false;
  if ((state.revents & POLLIN) == 0 && !may_open_again(command)) finish(output);
}

/* Reads as much as is there: a terminal gives at most a page at once (N_TTY_BUF_SIZE), and each frame has its price. */
static ssize_t read_all(const struct command *command, int fd, size_t most) {
  ssize_t count = read(fd, chunk, most), more = count;
  while (command->terminal && more > 0 && (size_t)count < most) {
    more = read(fd, chunk + count, most - (size_t)count);
    if (more > 0) count += more;
  }
  return count;
}

/* Reads once. False when no data is available, for now or for ever. */
static bool transfer(struct command *command, int which) {
  struct output *output = &command->outputs[which];
  if (output->eof) return false;
  if (!may_read(command)) {
    look_for_end(command, output);
    return false;
  }
  size_t most = command->discard || command->credit > CHUNK ? CHUNK : (size_t)command->credit;
  ssize_t count = read_all(command, output->fd, most);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
    /* The kernel has moved all that was written before to the master's side by now (n_tty_read flushes its work). */
    if (command->terminal && errno == EAGAIN) output->owed = 0;
    return false;
  }
  output->shut = count < 0 && errno == EIO && may_open_again(command);
  if (output->shut) return false;
  if (count <= 0) {
    if (count < 0) give_up(output);
    else finish(output);
    return false;
  }
  output->owed -= output->owed < (uint64_t)count ? output->owed : (uint64_t)count;
  if (command->discard) return true;
  command->credit -= (uint64_t)count;
  channel_send(which == 0 ? FRAME_STDOUT : FRAME_STDERR, command->id, chunk, (size_t)count);
  return true;
}

void outputs_pump(struct command *command, int which) {
  /* To change the watch of a shut terminal would report it at once. */
  if (command->outputs[which].armed != ARMED_FOR_OPENING) command->outputs[which].armed = DISARMED;
  transfer(command, which);
  /* After the last byte that EXIT waited for, the end of file usually follows. */
  if (command->ended && !command->exit_sent && command->outputs[which].owed == 0) transfer(command, which);
  arm(command);
}

void outputs_resume(struct command *command) {
  arm(command);
}

void outputs_show(struct command *command) {
  while (transfer(command, 0)) continue;
  arm(command);
}

void outputs_settle(struct command *command) {
  for (int i = 0; i < 2; i++) {
    struct output *output = &command->outputs[i];
    if (output->eof) continue;
    int standing = TERMINAL_HOLDS;
    if (!command->terminal && ioctl(output->fd, FIONREAD, &standing) < 0) {
      give_up(output);
      continue;
    }
    output->owed = (uint64_t)standing;
    while (output->owed > 0 && transfer(command, i)) continue;
    /* Read once more for the end of file, so that an ordinary command needs no frame after its EXIT. */
    if (output->owed == 0) transfer(command, i);
  }
}
