#ifndef SUBSTRATE_CHANGES_HELD_MARKS_H
#define SUBSTRATE_CHANGES_HELD_MARKS_H

#include <stdbool.h>
#include <stdint.h>

#include "changes/held_text.h"

/* The lower inode that an entry of an upper layer was copied from, as name_to_handle_at(2) names it. */
struct origin {
  unsigned length;
  int type;
  uint8_t bytes[128];
};

/* What extended attributes say of one entry (kernel: Documentation/filesystems/overlayfs.rst). */
struct marks {
  bool opaque;      /* a folder that hides all of the lower one */
  bool whiteouts;   /* a folder whose empty files may be whiteouts */
  bool whiteout;    /* such a file */
  bool elsewhere;   /* metacopy or redirect: what was seen is not what lies here */
  bool capability;  /* a file capability */
  bool forged;      /* an overlay's mark that a command wrote */
  struct origin origin;
};

/* Which marks the kernel has read for these overlays: `user.` (mounted with userxattr) or `trusted.`. The others a command
   can set as it likes. */
void marks_take(bool user);
/* Reads them off `name` in `folder`, following no link. -1 with errno. */
int marks_of(int folder, const char *name, struct marks *marks);
/* Whether the inode at `name` is the one that `origin` names; true where the file system has no names for inodes. */
bool origin_is(const struct origin *origin, int folder, const char *name);

/* The attributes that are a person's own and are kept: `user.` without the overlay's, and access lists. */
bool attribute_is_kept(const char *name);
/* Their names, each a field, off what `path` (which may be of /proc/self/fd) leads to or is. -1 with errno. */
int attributes_of(const char *path, struct text *names);
bool attributes_equal(int left, const char *left_name, int right, const char *right_name);
/* Makes the kept attributes of `to` those of `from`; both are paths of /proc/self/fd. */
int attributes_copy(const char *from, const char *to);

#endif
