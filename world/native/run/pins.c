#define _GNU_SOURCE
#include "run/pins.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "lib/credentials.h"
#include "lib/descriptors.h"
#include "lib/failure.h"
#include "lib/fields.h"
#include "lib/frames.h"
#include "lib/mount_api.h"

/* Follows no symlink: a command may have replaced the folder by one. */
static int open_folder(int root, const char *path) {
  return open_below(root, path, O_PATH | O_NOFOLLOW | O_DIRECTORY, WALK_NO_SYMLINKS);
}

/* 0 or an errno. */
static int pin(int root, const char *path) {
  int folder = open_folder(root, path);
  if (folder < 0) return errno;
  int result = close_keeping_errno(folder, mount_pin(folder));
  if (result < 0) return errno;
  /* A command may have moved the folder just before the mount, which is then elsewhere. From now on none can. */
  folder = open_folder(root, path);
  if (folder < 0) return errno;
  bool stays = mount_is_root(folder);
  close(folder);
  return stays ? 0 : ESTALE;
}

void pins_add(const struct frame *frame) {
  struct field_reader reader = {frame->payload, frame->payload + frame->length};
  struct field field;
  uint8_t payload[FIELD_HEADER_SIZE + 8];
  struct field_writer writer = {.data = payload, .capacity = sizeof payload};
  int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  int error = root < 0 ? errno : 0;
  int got;
  credentials_raise();
  while ((got = field_next(&reader, &field)) > 0) {
    if (field.tag != TAG_PATH || !field_is_string(&field, 1)) fail_protocol("PIN: bad field");
    const char *path = field_terminate(&field);
    if (error == 0) error = pin(root, path);
  }
  credentials_lower();
  if (got < 0) fail_protocol("PIN: malformed");
  if (root >= 0) close(root);
  field_put_u64(&writer, TAG_ERRNO, (uint64_t)error);
  channel_send(FRAME_PINNED, frame->id, payload, writer.length);
}
