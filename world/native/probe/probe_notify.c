/* Tests whether another process can answer for a seccomp filter, by answering a single call. */
#define _GNU_SOURCE
#include "probe/probe_notify.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Since Linux 5.19. */
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

/* A result impossible for getppid(2). */
#define ANSWER 0x3fffff17

#define PATIENCE_MS 3000

/* Message of the child before its call: whether and how the listener was made. */
struct word {
  int error;
  int killable;
};

static int failed(const char *step, int error) {
  printf("failed %s %d\n", step, error);
  return 1;
}

static int install(struct word *word) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};
  unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER;
  word->killable = 1;
  long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &program);
  if (fd < 0 && errno == EINVAL) {
    word->killable = 0;
    fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
  }
  word->error = fd < 0 ? errno : 0;
  return (int)fd;
}

static int send_word(int channel, struct word *word, int fd) {
  char control[CMSG_SPACE(sizeof fd)] = {0};
  struct iovec part = {word, sizeof *word};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  return sendmsg(channel, &message, MSG_NOSIGNAL) == sizeof *word ? 0 : -1;
}

/* Returns the listener, or -1 with the child's error in `word`. */
static int receive_word(int channel, struct word *word) {
  int fd = -1;
  char control[CMSG_SPACE(sizeof fd)] = {0};
  struct iovec part = {word, sizeof *word};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  if (recvmsg(channel, &message, MSG_CMSG_CLOEXEC) != sizeof *word) {
    word->error = EPIPE;
    return -1;
  }
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  if (header != NULL && header->cmsg_type == SCM_RIGHTS) memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return fd;
}

_Noreturn static void ask(int channel) {
  struct word word = {0, 0};
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) _exit(1);
  int listener = install(&word);
  if (send_word(channel, &word, listener) < 0 || listener < 0) _exit(1);
  /* Close this copy: otherwise the call would wait for ever if the parent died. */
  close(listener);
  _exit(syscall(SYS_getppid) == ANSWER ? 0 : 1);
}

static int answer(int listener) {
  struct seccomp_notif request = {0};
  struct pollfd ready = {.fd = listener, .events = POLLIN};
  if (poll(&ready, 1, PATIENCE_MS) != 1) return failed("poll", ETIMEDOUT);
  if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) < 0) return failed("receive", errno);
  struct seccomp_notif_resp response = {.id = request.id, .val = ANSWER};
  if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response) < 0) return failed("answer", errno);
  return 0;
}

int probe_notify(void) {
  int pair[2];
  int status;
  struct word word;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) return failed("socketpair", errno);
  pid_t child = fork();
  if (child < 0) return failed("fork", errno);
  if (child == 0) ask(pair[1]);
  close(pair[1]);
  int listener = receive_word(pair[0], &word);
  if (listener < 0) return failed("listener", word.error);
  if (answer(listener) != 0) return 1;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return failed("wait", errno);
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return failed("call", EIO);
  printf("ok %d\n", word.killable);
  return 0;
}
