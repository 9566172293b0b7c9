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
/* The least page of any kernel: a string is looked at that much at a time, since what is behind it may not be there. */
#define PAGE 4096

/* The one thing that is kept: where to, in the abstract namespace of the world's own network. Empty on the host, and in worlds
   that do not ask. */
static struct sockaddr_un address;
static socklen_t address_length;
/* What was not taken, to be told with the next one that is. */
static atomic_uint missed;

extern char **environ;

/* By the dynamic linker, before anything of the program runs, which may clear its environment or write over it (setproctitle). No
   system call, and not getenv: a shell has its own. */
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

/* Whether eight bytes can be read there: the kernel looks at a signal mask before it refuses to change it in no known way. NULL is
   no mask for it, and no string for us. */
static bool is_readable(uintptr_t at) {
  if (at < sizeof(uint64_t)) return false;
  return syscall(SYS_rt_sigprocmask, ~0, at & ~(uintptr_t)7, NULL, (size_t)8) == 0 || errno != EFAULT;
}

/* Of a string that the program hands to the kernel, which says EFAULT where we would fall over. SIZE_MAX: it is none. */
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

/* A descriptor of its own for each message: none is there for the program to close, inherit or count. */
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

/* The folder as the kernel names it, without its NUL; 0: it has no name that fits. */
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
  char name[REPORT_TEXT]; /* no more: the stack of a signal handler may be small */
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
