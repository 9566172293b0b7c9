/* Children of a spine: made, compared with the host, and removed. */
#ifndef SUBSTRATE_MOUNT_SPINE_CHILDREN_H
#define SUBSTRATE_MOUNT_SPINE_CHILDREN_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

struct child {
  struct child *next;
  struct stat status; /* of the host's file */
  bool seen;
  bool fixed; /* other mounts lie on or below this child: unchanged for the world's life */
  char name[NAME_MAX + 1];
};

/* Descriptors for a spine's children. All O_PATH except `host`. */
struct spine_place {
  const char *path;
  int host;  /* the host's folder, for reading */
  int view;  /* the folder as commands see it, read-only */
  int room;  /* the same folder, writable for PID 1 alone */
  int masks; /* the layer of whiteouts, in this namespace */
  int layer; /* the same layer, writable */
};

/* True for a name with a whiteout; child_reserved: with a folder, in the whiteout layer of host overlays. */
bool child_hidden(const struct spine_place *place, const char *name);
bool child_reserved(const struct spine_place *place, const char *name);

/* Makes a child. 0, or -1 with errno. Skips anything but files, folders and links. */
int child_make(const struct spine_place *place, const struct child *child);
/* Makes a mount point where the host has no file. */
int child_reserve(const struct spine_place *place, const char *name);
int child_remove(const struct spine_place *place, const struct child *child);

#endif
