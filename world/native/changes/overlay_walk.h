/* The one walk over an overlay's upper layer against the tree below, and the format of its rows. The listing of a
   reply (changes.c) and held changes (held.c) read the same rows; world/overlay/rows.ts decodes them. */
#ifndef SUBSTRATE_CHANGES_OVERLAY_WALK_H
#define SUBSTRATE_CHANGES_OVERLAY_WALK_H

#include <stdbool.h>

#include "changes/paths.h"
#include "changes/text.h"

/* The letters are on disk too: a first scan is kept as rows. */
enum row_kind {
  ROW_FILE = 'f',
  ROW_FOLDER = 'd',
  ROW_LINK = 'l',
  ROW_OTHER = 'x',   /* pipe, socket or device */
  ROW_REMOVED = 'w', /* a lower name under a whiteout, or in a folder that hides the lower folder */
  ROW_BELOW = '.',   /* an entry of a lower folder, before the row that removes, replaces or hides the folder */
  ROW_UNREAD = 'u',  /* LOOK_TO_LIST: a path that cannot be read */
};

/* Sent as letters, in the order of ROW_FLAG_LETTERS. */
enum row_flag {
  ROW_NO_LOWER_FOLDER = 1 << 0, /* the folder around it is missing in the lower tree */
  ROW_OPAQUE = 1 << 1,          /* the folder hides the lower folder */
  ROW_ATTRIBUTES = 1 << 2,      /* mode, owner or extended attributes differ */
  ROW_MTIME = 1 << 3,           /* mtime differs */
  ROW_CONTENT = 1 << 4,         /* type or content differs */
  ROW_COPIED = 1 << 5,          /* the kernel copied it up */
  ROW_COPIED_OTHER = 1 << 6,    /* the kernel copied it up from another inode than the present lower inode */
  ROW_ACCESS_LIST = 1 << 7,     /* the access list differs, or a new entry has one */
  ROW_EXTENDED = 1 << 8,        /* as with the access list: `user.` attributes */
  ROW_OWNER = 1 << 9,           /* LOOK_TO_APPLY: owner or group differs */
  ROW_HIDDEN = 1 << 10,         /* removed because the folder around it hides the lower folder */
};
#define ROW_FLAG_LETTERS "noatcgGlewi"

struct row {
  enum row_kind kind;
  const char *path; /* relative to both trees; "" is their root */
  unsigned flags;
  const char *refusal; /* why the entry can never be applied; NULL: it can */
  struct sight above, below;
  /* Place of the upper entry, open until the taker returns; not sent. */
  int folder;
  const char *name;
};

/* Bytes of a written row before its path: the letter of the kind, and NUL. */
#define ROW_PATH_AT 2
/* Adds the six fields of a row: kind, path, flags, refusal or empty, upper state, lower state. */
void row_write(struct text *text, const struct row *row);

enum look {
  /* For a reply: type, mode, content, access lists and `user.` attributes. Reports unreadable paths and goes on; reads at most
     CONTENT_MAX bytes; leaves out paths longer than PATH_MAX; changes no mode to read a file. */
  LOOK_TO_LIST,
  /* For held changes: everything that an apply sets, compares or refuses. A path longer than PATH_MAX is one refused row. Ends at the
     first error. */
  LOOK_TO_APPLY,
};

/* False: ends the walk. */
typedef bool (*row_taker)(void *context, const struct row *row);

/* Walks the open folders `upper` and `lower`, following no link: folders before their content, otherwise in no
   order. The cost grows with the upper layer, not with the tree. -1 with errno. */
int overlay_walk(int upper, int lower, enum look look, row_taker take, void *context);

/* Lets the process open all files that its hard limit allows: the walk takes two descriptors per level. */
void overlay_walk_allow_files(void);

#endif
