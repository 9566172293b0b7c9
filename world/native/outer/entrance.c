#define _GNU_SOURCE
#include "outer/entrance.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/channel.h"

/* Name of the socket, resolved from its folder, so that the folder's path may have any length. */
#define SOCKET_NAME "channel"

static const char *root = "";

_Noreturn static void refuse(const char *what, const char *path) {
  fprintf(stderr, "Cannot %s '%s': %s\n", what, path, strerror(errno));
  _exit(1);
}

static void connect_channel(const char *folder) {
  struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = SOCKET_NAME};
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) refuse("make a socket for", folder);
  if (chdir(folder) < 0) refuse("enter the broker's folder", folder);
  if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0) refuse("reach the broker in", folder);
  if (chdir("/") < 0) refuse("leave", folder);
  if (fd == CHANNEL_FD) return;
  if (dup3(fd, CHANNEL_FD, O_CLOEXEC) < 0) refuse("keep the channel of", folder);
  close(fd);
}

void entrance_take(int argc, char *const *argv) {
  if (argc == 1) return;
  if (argc != 3 || argv[1][0] != '/' || argv[2][0] != '/') {
    errno = EINVAL;
    refuse("use these arguments: wanted none, or ROOT and FOLDER, both absolute, after", argv[0]);
  }
  root = argv[1];
  connect_channel(argv[2]);
}

const char *entrance_root(void) {
  return root;
}
