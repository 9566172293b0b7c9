/* The children of one spine: made, compared with the host, and taken away. */
#ifndef SUBSTRATE_MOUNT_SPINE_CHILDREN_H
#define SUBSTRATE_MOUNT_SPINE_CHILDREN_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

struct child {
  struct child *next;
  struct stat status; /* of the host's */
  bool seen;
  bool fixed; /* other mounts lie on it or below: it stays as it is for as long as the world lives */
  char name[NAME_MAX + 1];
};

/* Where a spine's children come from and go to. All O_PATH but `host`. */
struct spine_place {
  const char *path;
  int host;  /* the host's folder, to be read */
  int view;  /* what commands see, read-only */
  int room;  /* the same, to be written by us alone */
  int masks; /* the layer of whiteouts, in this namespace */
  int layer; /* the same, to be written */
};

/* Whether a name has a whiteout, or stands as a folder, in the layer of whiteouts. */
bool child_hidden(const struct spine_place *place, const char *name);
bool child_reserved(const struct spine_place *place, const char *name);

/* 0, or -1 with errno. What is neither file, folder nor link is not made. */
int child_make(const struct spine_place *place, const struct child *child);
/* A mount point, where the host has nothing. */
int child_reserve(const struct spine_place *place, const char *name);
int child_remove(const struct spine_place *place, const struct child *child);

#endif
