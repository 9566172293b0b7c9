#define _GNU_SOURCE
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define VARIABLE "SUBSTRATE_TELEMETRY="
/* Smallest page size of any kernel. Strings are read page by page, because the next page may be unmapped. */
#define PAGE 4096

/* The listener's address, an abstract socket in the world's network namespace. Empty on the host and in
   worlds without telemetry. */
static struct sockaddr_un address;
static socklen_t address_length;
/* Number of lost reports; the next delivered report carries the number. */
static atomic_uint missed;

extern char **environ;

/* Runs at load, before the program can clear or overwrite the environment (setproctitle). No system call, and
   no getenv(3): shells replace the function. */
__attribute__((constructor)) static void find_address(void) {
  size_t name = sizeof VARIABLE - 1;
  for (char **variable = environ; variable != NULL && *variable != NULL; variable++) {
    if (strncmp(*variable, VARIABLE, name) != 0) continue;
    size_t length = strlen(*variable + name);
    if (length == 0 || length > sizeof address.sun_path - 1) return;
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path + 1, *variable + name, length);
    address_length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
    return;
  }
}

void report_no_more(void) {
  address_length = 0;
}

/* Whether eight bytes at the address are readable: rt_sigprocmask(2) reads the mask before refusing an
   invalid `how`. The kernel takes NULL for no mask, so check NULL first. */
static bool is_readable(uintptr_t at) {
  if (at < sizeof(uint64_t)) return false;
  return syscall(SYS_rt_sigprocmask, ~0, at & ~(uintptr_t)7, NULL, (size_t)8) == 0 || errno != EFAULT;
}

/* Length of a string meant for the kernel, at most `most`; SIZE_MAX for unreadable memory, where the kernel
   answers EFAULT and strnlen(3) would crash. */
static size_t length_of(const char *text, size_t most) {
  uintptr_t start = (uintptr_t)text;
  size_t length = 0;
  while (length < most) {
    size_t part = PAGE - (start + length) % PAGE;
    if (part > most - length) part = most - length;
    if (!is_readable(start + length)) return SIZE_MAX;
    size_t found = strnlen((const char *)(start + length), part);
    length += found;
    if (found < part) return length;
  }
  return length;
}

/* Opens a socket for each message, so the program finds no descriptor to close, inherit or count. */
static void send_message(struct iovec *parts, size_t count) {
  uint8_t *header = parts[0].iov_base;
  unsigned before = atomic_exchange(&missed, 0);
  unsigned told = before > UINT16_MAX ? UINT16_MAX : before;
  header[2] = (uint8_t)told;
  header[3] = (uint8_t)(told >> 8);
  struct msghdr message = {.msg_name = &address, .msg_namelen = address_length, .msg_iov = parts, .msg_iovlen = count};
  long fd = syscall(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  bool sent = fd >= 0 && syscall(SYS_sendmsg, fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
  if (fd >= 0) syscall(SYS_close, fd);
  atomic_fetch_add(&missed, sent ? before - told : before + 1);
}

void report_bytes(enum report_kind kind, const void *bytes, size_t length) {
  if (address_length == 0) return;
  int error = errno;
  bool cut = length > REPORT_TEXT;
  uint8_t header[REPORT_HEADER] = {(uint8_t)kind, cut ? REPORT_CUT : 0};
  struct iovec parts[2] = {{header, sizeof header}, {(void *)(uintptr_t)bytes, cut ? REPORT_TEXT : length}};
  send_message(parts, 2);
  errno = error;
}

static void put_number(char *at, unsigned number) {
  char digits[12];
  size_t count = 0;
  do digits[count++] = (char)('0' + number % 10);
  while ((number /= 10) > 0);
  while (count > 0) *at++ = digits[--count];
  *at = 0;
}

/* Stores the kernel's path of a folder, without NUL; returns the length, 0 without a path that fits. */
static size_t folder_of(int folder, char name[REPORT_TEXT]) {
  char link[32] = "/proc/self/fd/";
  if (folder == AT_FDCWD) {
    long length = syscall(SYS_getcwd, name, REPORT_TEXT);
    return length > 1 && name[0] == '/' ? (size_t)length - 1 : 0;
  }
  if (folder < 0) return 0;
  put_number(link + strlen(link), (unsigned)folder);
  long length = syscall(SYS_readlinkat, AT_FDCWD, link, name, REPORT_TEXT);
  return length > 0 && length < REPORT_TEXT ? (size_t)length : 0;
}

void report_path(enum report_kind kind, int folder, const char *path) {
  char name[REPORT_TEXT]; /* a signal handler may have a small stack */
  if (address_length == 0) return;
  int error = errno;
  size_t length = length_of(path, REPORT_TEXT + 1);
  bool known = length != SIZE_MAX;
  size_t before = known && (length == 0 || path[0] != '/') ? folder_of(folder, name) : 0;
  size_t slash = before > 0 && name[before - 1] != '/' && length > 0 ? 1 : 0;
  size_t room = REPORT_TEXT - before - slash;
  bool cut = known && length > room;
  uint8_t header[REPORT_HEADER] = {(uint8_t)kind, cut ? REPORT_CUT : 0};
  struct iovec parts[4] = {
      {header, sizeof header}, {name, before}, {"/", slash}, {(void *)(uintptr_t)path, cut ? room : length}};
  if (known) send_message(parts, 4);
  errno = error;
}

void report_descriptor(enum report_kind kind, int fd) {
  char name[REPORT_TEXT];
  if (address_length == 0) return;
  int error = errno;
  size_t length = folder_of(fd, name);
  if (length > 0) report_bytes(kind, name, length);
  errno = error;
}
