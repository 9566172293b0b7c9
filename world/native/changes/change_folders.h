/* Queue of folders to visit in an upper layer and the lower tree, and how to open them. */
#ifndef SUBSTRATE_CHANGES_CHANGE_FOLDERS_H
#define SUBSTRATE_CHANGES_CHANGE_FOLDERS_H

#include <stdbool.h>
#include <stddef.h>

/* MERGED: in both trees; NEW: in the upper layer alone; OPAQUE: in both trees, hiding the lower folder; GONE:
   in the lower tree alone. */
enum folder_kind { FOLDER_MERGED, FOLDER_NEW, FOLDER_OPAQUE, FOLDER_GONE };

struct waiting_folder {
  struct waiting_folder *next;
  enum folder_kind kind;
  char path[]; /* relative; "" is the root */
};

/* Stores paths, not descriptors: a tree can be deeper than the limit of open files. */
struct folders {
  struct waiting_folder *first, *last;
  size_t bytes;
  bool full;
};

struct open_folder {
  const char *path;
  enum folder_kind kind; /* kind after reading the folder's own marks */
  int upper, lower;      /* -1: missing */
  bool marks_whiteouts;  /* marked empty files are whiteouts here */
};

void folders_add(struct folders *folders, const char *path, enum folder_kind kind);
/* Returns the next folder, to be freed by the caller; NULL at the end. */
struct waiting_folder *folders_next(struct folders *folders);

/* Opens a folder in both trees, following no link and staying inside. False: unreadable. */
bool folder_open(int upper, int lower, const struct waiting_folder *waiting, struct open_folder *folder);
void folder_close(const struct open_folder *folder);
/* Sets the prefix of the marks that the kernel reads for this overlay. Marks with the other prefix are up to
   the command. */
void folders_take_marks(bool of_user);
/* True for a file marked as a whiteout. */
bool folder_has_whiteout(int folder, const char *name);

#endif
