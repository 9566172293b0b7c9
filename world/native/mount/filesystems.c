#define _GNU_SOURCE
#include "mount/filesystems.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/descriptors.h"
#include "lib/mount_api.h"
#include "mount/targets.h"

#define OPTIONS_MAX 1024

int place_tree(const struct stage *stage, int tree, const char *target, uint64_t attributes) {
  if (tree < 0) return -1;
  int place = target_open(stage->world, target);
  int result = place < 0 || mount_restrict(tree, attributes) < 0 ? -1 : mount_place(tree, place);
  result = close_keeping_errno(place, result);
  return close_keeping_errno(tree, result);
}

static int finish(const struct stage *stage, int context, const char *target, uint64_t attributes, int ready) {
  int tree = ready < 0 ? -1 : filesystem_mount(context, attributes);
  close_keeping_errno(context, 0);
  return place_tree(stage, tree, target, attributes);
}

int place_filesystem(const struct stage *stage, const char *type, const char *options, const char *target,
                     uint64_t attributes) {
  char text[OPTIONS_MAX];
  if (strlen(options) >= sizeof text) {
    errno = EINVAL;
    return -1;
  }
  strcpy(text, options);
  int context = filesystem_begin(type);
  if (context < 0) return -1;
  int ready = 0;
  char *state;
  for (char *key = strtok_r(text, ",", &state); key != NULL && ready == 0; key = strtok_r(NULL, ",", &state)) {
    char *value = strchr(key, '=');
    if (value != NULL) *value++ = 0;
    ready = filesystem_option(context, key, value);
  }
  return finish(stage, context, target, attributes, ready);
}

/* Names overlay layers by descriptor: lowerdir gives ':' and '\\' a meaning, and older kernels refuse ',' in
   any value; /proc/self/fd/N contains no such character, whatever the folder's name. */
int overlay_layer(const struct stage *stage, int context, const char *key, const char *source) {
  char link[32];
  int fd = open_below(stage->host, source, O_PATH | O_DIRECTORY, WALK_NO_SYMLINKS);
  if (fd < 0) return -1;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  /* Keep the descriptor open: the kernel resolves the layers only when the mount is created. */
  return filesystem_option(context, key, link) < 0 ? -1 : fd;
}

int place_overlay(const struct stage *stage, const struct mount_step *step, const char **path) {
  static const char *const KEYS[3] = {"lowerdir", "upperdir", "workdir"};
  const char *const *parts = step->parts;
  int layers[3] = {-1, -1, -1};
  int ready = 0;
  if (step->count > 5 && strcmp(parts[5], "userxattr") != 0) {
    errno = EINVAL;
    return -1;
  }
  int context = filesystem_begin("overlay");
  if (context < 0) return -1;
  for (int i = 0; i < 3 && ready == 0; i++) {
    *path = parts[i + 1];
    layers[i] = overlay_layer(stage, context, KEYS[i], parts[i + 1]);
    if (layers[i] < 0) ready = -1;
  }
  if (ready == 0) {
    *path = parts[4];
    /* If a host's module turned these on, a layer would refer to content elsewhere and could not be
       applied. */
    if (filesystem_option(context, "index", "off") < 0 || filesystem_option(context, "metacopy", "off") < 0 ||
        filesystem_option(context, "volatile", NULL) < 0 ||
        filesystem_option(context, "redirect_dir", "nofollow") < 0 ||
        (step->count > 5 && filesystem_option(context, "userxattr", NULL) < 0)) {
      ready = -1;
    }
  }
  int result = finish(stage, context, parts[4], ATTR_NOSUID | ATTR_NODEV, ready);
  int error = errno;
  for (int i = 0; i < 3; i++) {
    if (layers[i] >= 0) close(layers[i]);
  }
  errno = error;
  return result;
}

int folder_cover(const char *path) {
  int place = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (place < 0) return -1;
  int context = filesystem_begin("tmpfs");
  int tree = -1;
  int result = -1;
  if (context >= 0 && filesystem_option(context, "mode", "755") == 0 &&
      filesystem_option(context, "size", "4k") == 0) {
    tree = filesystem_mount(context, ATTR_NOSUID | ATTR_NODEV | ATTR_NOEXEC | ATTR_RDONLY);
    if (tree >= 0) result = mount_place(tree, place);
  }
  result = close_keeping_errno(tree, result);
  result = close_keeping_errno(context, result);
  return close_keeping_errno(place, result);
}
