#include "channel.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "failure.h"
#include "fields.h"
#include "frames.h"
#include "last_look.h"

/* Most frames fit here; a larger one gets its own mapping, which is given back after it. */
#define SMALL_BUFFER (64 * 1024 + FRAME_HEADER_SIZE)

static uint8_t small_buffer[SMALL_BUFFER];
static uint8_t *large_buffer;
static size_t large_size;
static size_t start, end;

void channel_open(void) {
  int flags = fcntl(CHANNEL_FD, F_GETFL);
  if (flags < 0 || fcntl(CHANNEL_FD, F_SETFL, flags & ~O_NONBLOCK) < 0 ||
      fcntl(CHANNEL_FD, F_SETFD, FD_CLOEXEC) < 0) {
    _exit(1);
  }
}

void channel_send(uint8_t type, uint32_t id, const void *payload, size_t length) {
  uint8_t header[FRAME_HEADER_SIZE] = {0};
  write_u32(header, (uint32_t)length);
  header[4] = type;
  write_u32(header + 8, id);
  struct iovec parts[2] = {{header, sizeof header}, {(void *)(uintptr_t)payload, length}};
  size_t sent = 0;
  size_t total = sizeof header + length;
  while (sent < total) {
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = length > 0 ? 2 : 1};
    ssize_t count = sendmsg(CHANNEL_FD, &message, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) _exit(1);
    sent += (size_t)count;
    for (int i = 0; i < 2; i++) {
      size_t taken = (size_t)count < parts[i].iov_len ? (size_t)count : parts[i].iov_len;
      parts[i].iov_base = (uint8_t *)parts[i].iov_base + taken;
      parts[i].iov_len -= taken;
      count -= (ssize_t)taken;
    }
  }
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
  /* No broker, no world: the kernel ends every process of the pid namespace with its PID 1. One that only stopped
     to talk still listens. */
  if (count <= 0) {
    last_look();
    _exit(count == 0 ? 0 : 1);
  }
  end += (size_t)count;
  return true;
}

/* Makes room for a frame of `total` bytes that begins at `start`. */
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
    /* Only as many bytes as the frame needs are received into a large buffer: nothing follows it. */
    munmap(large_buffer, large_size);
    large_buffer = NULL;
    start = end = 0;
    return;
  }
  start += FRAME_HEADER_SIZE + (size_t)read_u32(small_buffer + start);
  if (start == end) start = end = 0;
}
