/* Folders of an upper layer and of what lies below it: which are still to be looked into, and how they are opened. */
#ifndef SUBSTRATE_CHANGES_CHANGE_FOLDERS_H
#define SUBSTRATE_CHANGES_CHANGE_FOLDERS_H

#include <stdbool.h>
#include <stddef.h>

/* On both sides; in the upper layer alone; on both sides with nothing below showing through; below alone. */
enum folder_kind { FOLDER_MERGED, FOLDER_NEW, FOLDER_OPAQUE, FOLDER_GONE };

struct waiting_folder {
  struct waiting_folder *next;
  enum folder_kind kind;
  char path[]; /* relative; "" is the first */
};

/* By path and not by descriptor: a tree can be deeper than a process may have files open. */
struct folders {
  struct waiting_folder *first, *last;
  size_t bytes;
  bool full;
};

struct open_folder {
  const char *path;
  enum folder_kind kind; /* what its own marks make of it */
  int upper, lower;      /* -1: not there */
  bool marks_whiteouts;  /* empty files with a mark are whiteouts here */
};

void folders_add(struct folders *folders, const char *path, enum folder_kind kind);
/* To be freed; NULL when there is none. */
struct waiting_folder *folders_next(struct folders *folders);

/* Never through a link, and never out of the two trees. False when it cannot be read. */
bool folder_open(int upper, int lower, const struct waiting_folder *waiting, struct open_folder *folder);
void folder_close(const struct open_folder *folder);
/* Which marks count: those that the kernel read for this overlay. A command can set the others as it likes. */
void folders_take_marks(bool of_user);
/* Whether a file has the mark of a whiteout. */
bool folder_has_whiteout(int folder, const char *name);

#endif
