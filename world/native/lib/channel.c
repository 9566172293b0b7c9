#include "lib/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/failure.h"
#include "lib/fields.h"
#include "lib/frames.h"

/* Longest path in the report of a failure; the rest is cut. */
#define REPORTED_PATH 4096

/* Most frames fit here; a larger frame gets its own mapping, freed afterwards. */
#define SMALL_BUFFER (64 * 1024 + FRAME_HEADER_SIZE)

static uint8_t small_buffer[SMALL_BUFFER];
static uint8_t *large_buffer;
static size_t large_size;
static size_t start, end;

/* Bytes kept for a broker that does not read. Beyond this limit PID 1 blocks: outputs are bounded
   separately. */
#define BACKLOG_MAX (8 * 1024 * 1024)
static bool patient, gone;
static uint8_t *backlog;
static void (*on_end)(void), (*on_loss)(void);
static size_t backlog_start, backlog_length, backlog_room;

void channel_open(void) {
  int flags = fcntl(CHANNEL_FD, F_GETFL);
  if (flags < 0 || fcntl(CHANNEL_FD, F_SETFL, flags & ~O_NONBLOCK) < 0 ||
      fcntl(CHANNEL_FD, F_SETFD, FD_CLOEXEC) < 0) {
    _exit(1);
  }
}

static void append(const void *data, size_t length) {
  if (backlog_start + backlog_length + length > backlog_room) {
    memmove(backlog, backlog + backlog_start, backlog_length);
    backlog_start = 0;
  }
  if (backlog_length + length > backlog_room) {
    size_t room = 2 * (backlog_length + length);
    backlog = realloc(backlog, room);
    if (backlog == NULL) _exit(1);
    backlog_room = room;
  }
  memcpy(backlog + backlog_start + backlog_length, data, length);
  backlog_length += length;
}

/* Returns the bytes that the socket took; 0: full. */
static size_t send_some(struct iovec *parts, size_t count, int flags) {
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
  ssize_t sent;
  do {
    sent = sendmsg(CHANNEL_FD, &message, MSG_NOSIGNAL | flags);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0 && (flags & MSG_DONTWAIT) != 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
  if (sent <= 0) channel_lost();
  return (size_t)sent;
}

static void send_backlog(int flags) {
  while (backlog_length > 0) {
    struct iovec rest = {backlog + backlog_start, backlog_length};
    size_t sent = send_some(&rest, 1, flags);
    if (sent == 0) return;
    backlog_start += sent;
    backlog_length -= sent;
  }
  backlog_start = 0;
}

void channel_send(uint8_t type, uint32_t id, const void *payload, size_t length) {
  if (gone) return;
  uint8_t header[FRAME_HEADER_SIZE] = {0};
  write_u32(header, (uint32_t)length);
  header[4] = type;
  write_u32(header + 8, id);
  struct iovec parts[2] = {{header, sizeof header}, {(void *)(uintptr_t)payload, length}};
  bool blocks = !patient || backlog_length + length > BACKLOG_MAX;
  if (backlog_length > 0) send_backlog(blocks ? 0 : MSG_DONTWAIT);
  size_t left = sizeof header + length;
  while (left > 0) {
    size_t sent = backlog_length > 0 ? 0 : send_some(parts, length > 0 ? 2 : 1, blocks ? 0 : MSG_DONTWAIT);
    left -= sent;
    for (int i = 0; i < 2; i++) {
      size_t taken = sent < parts[i].iov_len ? sent : parts[i].iov_len;
      parts[i].iov_base = (uint8_t *)parts[i].iov_base + taken;
      parts[i].iov_len -= taken;
      sent -= taken;
    }
    if (blocks || left == 0) continue;
    for (int i = 0; i < 2; i++) append(parts[i].iov_base, parts[i].iov_len);
    return;
  }
}

void channel_be_patient(bool yes) {
  patient = yes;
}

bool channel_has_room(void) {
  return !patient || backlog_length < BACKLOG_MAX / 2;
}

bool channel_has_backlog(void) {
  return backlog_length > 0;
}

void channel_send_backlog(void) {
  send_backlog(MSG_DONTWAIT);
}

void world_on_end(void (*look)(void), void (*alone)(void)) {
  on_end = look;
  on_loss = alone;
}

void channel_lost(void) {
  void (*look)(void) = on_loss;
  on_loss = NULL;
  gone = true;
  if (look != NULL) look();
  _exit(0);
}

/* Clears the callback before the call: the callback may fail the world itself, and the failure continues from
   there. */
static void before_end(void) {
  void (*look)(void) = on_end;
  on_end = NULL;
  if (look != NULL) look();
}

void fail_world(const char *step, const char *path, int error) {
  /* Not static: the callback may call fail_world again, with another path. */
  uint8_t payload[REPORTED_PATH + 512];
  struct field_writer writer = {.data = payload, .capacity = sizeof payload};
  field_put(&writer, TAG_STEP, step, strnlen(step, 256));
  field_put(&writer, TAG_PATH, path, strnlen(path, REPORTED_PATH));
  field_put_u64(&writer, TAG_ERRNO, (uint64_t)error);
  before_end();
  channel_be_patient(false);
  channel_send(FRAME_FAILED, 0, payload, writer.length);
  _exit(1);
}

void fail_protocol(const char *what) {
  fail_world("protocol", what, EPROTO);
}

static uint8_t *buffer(void) {
  return large_buffer != NULL ? large_buffer : small_buffer;
}

bool channel_receive(bool wait) {
  size_t capacity = large_buffer != NULL ? large_size : sizeof small_buffer;
  if (end == capacity) return false;
  ssize_t count;
  do {
    count = recv(CHANNEL_FD, buffer() + end, capacity - end, wait ? 0 : MSG_DONTWAIT);
  } while (count < 0 && errno == EINTR);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
  /* Without the broker the world ends: the kernel kills every process of the pid namespace with PID 1. A
     broker that only closed its sending side still listens. */
  if (count < 0) channel_lost();
  if (count == 0) {
    patient = false;
    before_end();
    send_backlog(0);
    _exit(0);
  }
  end += (size_t)count;
  return true;
}

/* Makes room for a frame of `total` bytes at `start`. */
static void make_room(size_t total) {
  if (large_buffer != NULL) return;
  if (total <= sizeof small_buffer) {
    if (total > sizeof small_buffer - start) {
      memmove(small_buffer, small_buffer + start, end - start);
      end -= start;
      start = 0;
    }
    return;
  }
  uint8_t *mapping = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) fail_world("receive", "", errno);
  memcpy(mapping, small_buffer + start, end - start);
  large_buffer = mapping;
  large_size = total;
  end -= start;
  start = 0;
}

bool channel_next(struct frame *frame) {
  if (end - start < FRAME_HEADER_SIZE) {
    make_room(FRAME_HEADER_SIZE);
    return false;
  }
  const uint8_t *header = buffer() + start;
  uint32_t length = read_u32(header);
  if (length > FRAME_MAX_PAYLOAD || header[5] != 0 || header[6] != 0 || header[7] != 0) {
    fail_protocol("malformed frame header");
  }
  if (end - start < FRAME_HEADER_SIZE + (size_t)length) {
    make_room(FRAME_HEADER_SIZE + (size_t)length);
    return false;
  }
  frame->type = header[4];
  frame->id = read_u32(header + 8);
  frame->length = length;
  frame->payload = buffer() + start + FRAME_HEADER_SIZE;
  return true;
}

void channel_release(void) {
  if (large_buffer != NULL) {
    /* A large buffer holds exactly its frame: no bytes follow. */
    munmap(large_buffer, large_size);
    large_buffer = NULL;
    start = end = 0;
    return;
  }
  start += FRAME_HEADER_SIZE + (size_t)read_u32(small_buffer + start);
  if (start == end) start = end = 0;
}
