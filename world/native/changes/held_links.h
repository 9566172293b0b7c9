#ifndef HELD_LINKS_H
#define HELD_LINKS_H

#include <stddef.h>
#include <sys/stat.h>

#define LINK_BUCKETS 8192

/* Files of several names that were copied already, so that the copies are one file as well. Zeroed to begin with. */
struct links {
  int home;        /* the folder that all copies lie in */
  const char *top; /* in it, where the copy that is being made begins */
  size_t skip;     /* how much of the paths of `link_remember` stands for `top` */
  struct linked *buckets[LINK_BUCKETS];
};

/* 1 when `as` in `to` is now another name of the file that was copied before, 0 when none was, -1 with errno. */
int link_again(const struct links *links, const struct stat *status, int to, const char *as);
void link_remember(struct links *links, const struct stat *status, const char *path);
void links_end(struct links *links);

#endif
