#define _GNU_SOURCE
#include "notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../client/say.h"

#define NAME "NOTIFY_SOCKET"

static bool refuse(const char *name, const char *why) {
  say("cannot reach the service manager at " NAME "='", name, "': ", why, NULL);
  return false;
}

bool notify_open(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const char *name = getenv(NAME);
  if (name == NULL || *name == 0) return true;
  size_t length = strlen(name);
  if (*name != '/' && *name != '@') return refuse(name, "neither a path nor an abstract name");
  if (length >= sizeof address.sun_path) return refuse(name, strerror(ENAMETOOLONG));
  memcpy(address.sun_path, name, length);
  /* An abstract name begins with a NUL and ends with the address (unix(7)). */
  if (*name == '@') address.sun_path[0] = 0;
  socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (*name == '/'));
  /* Not close-on-exec: for Node, which closes the descriptor for its own children. Non-blocking: a manager that does not read must not
     stop the broker. */
  int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  if (fd < 0) return refuse(name, strerror(errno));
  char number[sizeof "-2147483648"];
  snprintf(number, sizeof number, "%d", fd);
  if (connect(fd, (struct sockaddr *)&address, size) == 0 && setenv("SUBSTRATE_NOTIFY_FD", number, 1) == 0) return true;
  int error = errno;
  close(fd);
  return refuse(name, strerror(error));
}
