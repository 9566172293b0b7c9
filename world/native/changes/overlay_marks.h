#ifndef SUBSTRATE_CHANGES_OVERLAY_MARKS_H
#define SUBSTRATE_CHANGES_OVERLAY_MARKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "changes/text.h"

/* The lower inode from which an upper entry was copied up: a handle of name_to_handle_at(2). */
struct origin {
  unsigned length;
  int type;
  uint8_t bytes[128];
};

/* Extended attributes of an entry (kernel: Documentation/filesystems/overlayfs.rst). */
struct marks {
  bool opaque;      /* the folder hides the lower folder */
  bool whiteouts;   /* a folder whose empty files may be whiteouts */
  bool whiteout;    /* an empty file marked as a whiteout */
  bool elsewhere;   /* metacopy or redirect: the visible content is elsewhere */
  bool capability;  /* a file capability */
  bool forged;      /* an overlay mark written by a command */
  struct origin origin;
};

/* Sets the prefix that the kernel reads for these overlays: `user.` (mounted with userxattr) or `trusted.`.
   Commands can set marks with the other prefix. */
void marks_take(bool user);
/* Reads the marks of `name` in `folder`, following no link. -1 with errno. */
int marks_of(int folder, const char *name, struct marks *marks);
/* True for a whiteout: a character device 0:0, or (Linux 6.7) a marked empty file in a folder with `whiteouts`. */
bool is_whiteout(const struct stat *status, const struct marks *marks, bool whiteouts);
/* Why an entry of the upper layer can never be applied, for people; NULL: it can. */
const char *refusal_of(const struct stat *status, const struct marks *marks);
/* True when `name` leads to the inode of `origin`, or when the file system supports no handles. */
bool origin_is(const struct origin *origin, int folder, const char *name);

/* Kinds of kept attributes. */
enum attribute_kind { ATTRIBUTES_ACCESS_LIST = 1, ATTRIBUTES_EXTENDED = 2 };
/* The kinds in which two entries differ; both where one cannot be read. `right` -1: there is no other entry. */
unsigned attributes_differing(int left, const char *left_name, int right, const char *right_name);
/* Gives `to` the kept attributes of `from`, and no other kept attributes; both are paths of /proc/self/fd. */
int attributes_copy(const char *from, const char *to);
/* True when `now` has each kept attribute, or lacks it, as `one` or `other` does: a copy between these two may have been killed. Paths
   of /proc/self/fd. */
bool attributes_are_of(const char *now, const char *one, const char *other);

#endif
