#define _GNU_SOURCE
#include "run/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/channel.h"
#include "lib/commands.h"
#include "lib/descriptors.h"
#include "lib/frames.h"

struct state_file {
  char path[FRAME_MAX_STATE_PATH + 1];
  dev_t device; /* of the file as it was made */
  ino_t inode;
};

void state_begin(struct command *command, const char *path) {
  struct stat made;
  struct state_file *file = calloc(1, sizeof *file);
  int fd = file == NULL ? -1 : open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd >= 0 && fstat(fd, &made) < 0) {
    unlink(path);
    fd = close_keeping_errno(fd, -1);
  }
  if (fd < 0) return free(file);
  close(fd);
  strncpy(file->path, path, FRAME_MAX_STATE_PATH);
  file->device = made.st_dev;
  file->inode = made.st_ino;
  command->state = file;
}

/* Commands can put another file, a pipe or a link at the path: only the file that was made counts. */
static int open_again(const struct state_file *file) {
  struct stat found;
  int fd = open(file->path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return -1;
  if (fstat(fd, &found) == 0 && S_ISREG(found.st_mode) && found.st_dev == file->device && found.st_ino == file->inode) return fd;
  return close_keeping_errno(fd, -1);
}

void state_send(struct command *command) {
  static uint8_t content[FRAME_MAX_STATE];
  if (command->state == NULL) return;
  int fd = open_again(command->state);
  size_t length = 0;
  for (ssize_t count = 1; fd >= 0 && count > 0 && length < sizeof content;) {
    count = read(fd, content + length, sizeof content - length);
    if (count > 0) length += (size_t)count;
  }
  if (fd >= 0) close(fd);
  state_drop(command);
  channel_send(FRAME_STATE, command->id, content, length);
}

void state_drop(struct command *command) {
  if (command->state == NULL) return;
  unlink(command->state->path);
  free(command->state);
  command->state = NULL;
}
