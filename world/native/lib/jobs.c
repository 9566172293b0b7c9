#define _GNU_SOURCE
#include "lib/jobs.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

union control {
  struct cmsghdr header;
  char space[CMSG_SPACE(JOB_FDS * sizeof(int))];
};

int job_send(int socket, const void *head, size_t head_length, const void *body, size_t body_length,
             const int *fds, int fd_count, int flags) {
  struct iovec parts[2] = {{(void *)(uintptr_t)head, head_length}, {(void *)(uintptr_t)body, body_length}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = body_length > 0 ? 2 : 1};
  union control control;
  if (fd_count > 0) {
    memset(&control, 0, sizeof control);
    message.msg_control = control.space;
    message.msg_controllen = CMSG_SPACE((size_t)fd_count * sizeof(int));
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN((size_t)fd_count * sizeof(int));
    memcpy(CMSG_DATA(header), fds, (size_t)fd_count * sizeof(int));
  }
  ssize_t sent;
  do {
    sent = sendmsg(socket, &message, MSG_NOSIGNAL | flags);
  } while (sent < 0 && errno == EINTR);
  return sent < 0 ? -1 : 0;
}

ssize_t job_receive(int socket, void *data, size_t length, int *fds, int *fd_count, int flags) {
  struct iovec part = {data, length};
  union control control;
  /* Not the whole space, which is rounded up: the kernel would accept more than JOB_FDS. */
  struct msghdr message = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = control.space,
                           .msg_controllen = CMSG_LEN(JOB_FDS * sizeof(int))};
  ssize_t count;
  do {
    count = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | flags);
  } while (count < 0 && errno == EINTR);
  if (count < 0) return -1;
  int received = 0;
  for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header != NULL;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    for (size_t at = CMSG_LEN(0); at + sizeof(int) <= header->cmsg_len && received < JOB_FDS; at += sizeof(int)) {
      memcpy(&fds[received++], (const uint8_t *)header + at, sizeof(int));
    }
  }
  *fd_count = received;
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    while (*fd_count > 0) close(fds[--*fd_count]);
    errno = EMSGSIZE;
    return -1;
  }
  return count;
}
