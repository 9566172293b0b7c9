#define _GNU_SOURCE
#include "changes/held_links.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "changes/held_paths.h"
#include "changes/held_text.h"

struct linked {
  struct linked *next;
  dev_t device;
  ino_t inode;
  char *path; /* below `home` */
};

int link_again(const struct links *links, const struct stat *status, int to, const char *as) {
  const char *name;
  for (const struct linked *one = links->buckets[status->st_ino % LINK_BUCKETS]; one != NULL; one = one->next) {
    if (one->device != status->st_dev || one->inode != status->st_ino) continue;
    /* Not by its path at once: a folder in it could be swapped for a link meanwhile. */
    int parent = open_parent_of(links->home, one->path, &name);
    int result = parent < 0 ? -1 : linkat(parent, name, to, as, 0);
    int error = errno;
    if (parent >= 0) close(parent);
    errno = error;
    return result < 0 ? -1 : 1;
  }
  return 0;
}

void link_remember(struct links *links, const struct stat *status, const char *path) {
  struct linked **bucket = &links->buckets[status->st_ino % LINK_BUCKETS];
  struct linked *one = held_grow(NULL, sizeof *one);
  *one = (struct linked){.next = *bucket, .device = status->st_dev, .inode = status->st_ino};
  if (asprintf(&one->path, "%s%s", links->top, path + links->skip) < 0) abort();
  *bucket = one;
}

void links_end(struct links *links) {
  for (unsigned i = 0; i < LINK_BUCKETS; i++) {
    while (links->buckets[i] != NULL) {
      struct linked *one = links->buckets[i];
      links->buckets[i] = one->next;
      free(one->path);
      free(one);
    }
  }
}
