/* Overlay marks of the kernel: Documentation/filesystems/overlayfs.rst, "whiteouts and opaque directories". Both trees
   are walked in step, by descriptors. */
#define _GNU_SOURCE
#include "changes/overlay_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "changes/content.h"
#include "changes/overlay_marks.h"

#define READ_FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

#define TOO_LONG "the path is too long: the kernel takes 4,096 bytes"

struct walk {
  enum look look;
  row_taker take;
  void *context;
  uint64_t comparable; /* bytes that may still be compared */
  bool over;           /* the taker has had enough */
  bool long_below;     /* the lower folder of this row has a path that is too long */
};

/* A folder in both trees. */
struct folder {
  const char *path;
  int upper, lower; /* `lower` is -1 without a lower folder */
  bool whiteouts;   /* marked empty files are whiteouts here */
  bool covered;     /* the folder hides the lower folder */
};

struct entry {
  const struct folder *in;
  const char *path, *name;
};

void row_write(struct text *text, const struct row *row) {
  char kind[2] = {(char)row->kind, 0}, flags[sizeof ROW_FLAG_LETTERS];
  size_t length = 0;
  for (size_t i = 0; ROW_FLAG_LETTERS[i] != 0; i++) {
    if ((row->flags & (1U << i)) != 0) flags[length++] = ROW_FLAG_LETTERS[i];
  }
  flags[length] = 0;
  text_field(text, kind);
  text_field(text, row->path);
  text_field(text, flags);
  text_field(text, row->refusal == NULL ? "" : row->refusal);
  sight_write(text, &row->above);
  sight_write(text, &row->below);
}

static void tell(struct walk *walk, const struct row *row) {
  if (!walk->over && !walk->take(walk->context, row)) walk->over = true;
}

/* Handles a path that cannot be read (errno). */
static int unread(struct walk *walk, const char *path) {
  if (walk->look == LOOK_TO_APPLY) return -1;
  tell(walk, &(struct row){.kind = ROW_UNREAD, .path = path});
  return 0;
}

/* Nothing below such a path is visited. Each level takes stack, descriptors and the bytes of its path in each row below: a command
   nests thousands of folders with long names (chdir, mkdir) in a second. */
static bool is_too_long(const char *path) {
  return strlen(path) > PATH_MAX;
}

/* Reports a path that is too long, by the part that fits. The copy is not on the stack, which the recursion needs. */
static int unread_long(struct walk *walk, const char *path) {
  char *start = strndup(path, PATH_MAX);
  if (start == NULL) abort();
  int result = unread(walk, start);
  free(start);
  return result;
}

/* Returns false, so that nothing below is visited, for a path that is too long. */
static bool tell_below(void *context, const char *path, const struct sight *sight) {
  struct walk *walk = context;
  if (is_too_long(path)) {
    walk->long_below = true;
    return false;
  }
  tell(walk, &(struct row){.kind = ROW_BELOW, .path = path, .below = *sight});
  return !walk->over;
}

static int unread_below(void *context, const char *path) {
  return unread(context, path);
}

/* Tells all entries of a lower folder, and refuses `row` where not all can be told: if somebody changed one of them meanwhile, apply
   must ask. */
static int take_below(struct walk *walk, const struct entry *entry, struct row *row) {
  const struct below_taker taker = {tell_below, unread_below, walk};
  int folder = openat(entry->in->lower, entry->name, READ_FOLDER);
  if (folder < 0) return unread(walk, entry->path);
  walk->long_below = false;
  int result = walk_below(folder, entry->path, &row->below, &taker);
  if (walk->long_below) row->refusal = "a path in the project's folder of this name is too long: the kernel takes 4,096 bytes";
  close_keeping_errno(folder);
  return result;
}

static int take_removed(struct walk *walk, const struct entry *entry, const struct sight *below, unsigned flags) {
  struct row row = {.kind = ROW_REMOVED, .path = entry->path, .flags = flags, .below = *below};
  if (is_too_long(entry->path)) row.refusal = TOO_LONG;
  else if (below->type == TYPE_FOLDER && take_below(walk, entry, &row) < 0) return -1;
  tell(walk, &row);
  return 0;
}

/* Reads the state of a name. In a folder that cannot be searched, a listing counts the name as missing. */
static int sight_in(const struct walk *walk, int folder, const char *name, struct sight *sight) {
  return sight_at(folder, name, sight) < 0 && walk->look == LOOK_TO_APPLY ? -1 : 0;
}

static int take_hidden(struct walk *walk, const struct entry *entry) {
  struct sight above, below;
  if (walk->look == LOOK_TO_LIST && is_too_long(entry->path)) return 0;
  if (sight_in(walk, entry->in->upper, entry->name, &above) < 0) return -1;
  if (sight_in(walk, entry->in->lower, entry->name, &below) < 0) return -1;
  if (below.type == TYPE_NONE || above.type != TYPE_NONE) return 0;
  return take_removed(walk, entry, &below, ROW_HIDDEN);
}

typedef int (*entry_taker)(struct walk *walk, const struct entry *entry);

static int each_name(struct walk *walk, const struct folder *folder, int fd, entry_taker take_entry) {
  struct text names = {0};
  int result = names_of(fd, &names);
  if (result < 0) result = unread(walk, folder->path);
  struct text_reader reader = {names.data, names.data + names.length};
  for (char *name = text_next(&reader); name != NULL && result == 0 && !walk->over; name = text_next(&reader)) {
    char *path = path_join(folder->path, name);
    const struct entry entry = {folder, path, name};
    result = take_entry(walk, &entry);
    int error = errno;
    free(path);
    errno = error;
  }
  text_clear(&names);
  return result;
}

static int take_entry(struct walk *walk, const struct entry *entry);

static int take_content(struct walk *walk, const struct folder *folder) {
  int result = each_name(walk, folder, folder->upper, take_entry);
  bool hides = folder->covered && folder->lower >= 0;
  return result == 0 && hides ? each_name(walk, folder, folder->lower, take_hidden) : result;
}

/* A listing looks into another file system mounted in the lower tree; apply refuses such a folder. */
static int open_lower(const struct walk *walk, const struct entry *entry) {
  if (walk->look == LOOK_TO_LIST) return openat(entry->in->lower, entry->name, READ_FOLDER);
  return open_beneath(entry->in->lower, entry->name, O_RDONLY | O_DIRECTORY);
}

/* Tells the row of a folder, then its content. */
static int visit(struct walk *walk, struct row *row, struct folder *folder, bool lower_lost) {
  if (lower_lost) row->refusal = "the project's folder of this name cannot be read, or is another file system";
  folder->upper = openat(row->folder, row->name, READ_FOLDER);
  if (folder->upper < 0 && walk->look == LOOK_TO_APPLY) {
    if (errno != EACCES) return -1;
    row->refusal = "the folder's mode does not let its owner read it";
  }
  tell(walk, row);
  if (walk->look == LOOK_TO_LIST && (folder->upper < 0 || lower_lost)) return unread(walk, row->path);
  if (folder->upper < 0) return 0;
  return take_content(walk, folder);
}

static int take_folder(struct walk *walk, const struct entry *entry, struct row *row, const struct marks *marks) {
  bool merged = row->below.type == TYPE_FOLDER;
  struct folder folder = {.path = entry->path, .upper = -1, .lower = merged ? open_lower(walk, entry) : -1,
                          .whiteouts = marks->whiteouts, .covered = marks->opaque || entry->in->covered};
  bool lower_lost = merged && folder.lower < 0;
  /* A listing tells each hidden name of an opaque folder alone. */
  bool compares = walk->look == LOOK_TO_APPLY && marks->opaque && folder.lower >= 0;
  int result = compares ? take_below(walk, entry, row) : 0;
  if (result == 0) result = visit(walk, row, &folder, lower_lost);
  close_keeping_errno(folder.upper);
  close_keeping_errno(folder.lower);
  return result;
}

static bool owners_differ(const struct entry *entry, const struct stat *above) {
  struct stat below;
  if (fstatat(entry->in->lower, entry->name, &below, AT_SYMLINK_NOFOLLOW) < 0) return true;
  return above->st_uid != below.st_uid || above->st_gid != below.st_gid;
}

static bool content_differs(struct walk *walk, const struct entry *entry, const struct row *row) {
  const struct pair pair = {entry->in->upper, entry->in->lower, entry->name, &row->above, &row->below};
  if (row->below.type == TYPE_NONE) return false;
  /* Another mode alone is a change already. */
  if (walk->look == LOOK_TO_LIST && row->above.mode != row->below.mode) return false;
  return !content_same(&pair, walk->look == LOOK_TO_APPLY ? open_readable : open_plainly, &walk->comparable);
}

/* An access list says what the mode does not: a listing without it would hide who may write. */
static unsigned attribute_flags(const struct walk *walk, const struct entry *entry, const struct row *row) {
  bool both = entry->in->lower >= 0 && row->above.type == row->below.type;
  /* A listing tells a new entry anyway. */
  if (!both && walk->look == LOOK_TO_LIST) return 0;
  unsigned kinds = attributes_differing(entry->in->upper, entry->name, both ? entry->in->lower : -1, entry->name);
  return ((kinds & ATTRIBUTES_ACCESS_LIST) != 0 ? ROW_ACCESS_LIST : 0) | ((kinds & ATTRIBUTES_EXTENDED) != 0 ? ROW_EXTENDED : 0);
}

static unsigned flags_of(struct walk *walk, const struct entry *entry, const struct row *row, const struct stat *above,
                         const struct marks *marks) {
  unsigned common = (marks->opaque ? ROW_OPAQUE : 0) | attribute_flags(walk, entry, row);
  if (entry->in->lower < 0) return ROW_NO_LOWER_FOLDER | common;
  unsigned flags = common | (content_differs(walk, entry, row) ? ROW_CONTENT : 0);
  if (walk->look == LOOK_TO_LIST) return flags;
  if (row->above.type == row->below.type) {
    if (owners_differ(entry, above)) flags |= ROW_OWNER;
    bool differ = row->above.mode != row->below.mode || (flags & (ROW_OWNER | ROW_ACCESS_LIST | ROW_EXTENDED)) != 0;
    if (differ) flags |= ROW_ATTRIBUTES;
    if (row->above.mtime != row->below.mtime) flags |= ROW_MTIME;
  }
  if (marks->origin.length == 0) return flags;
  bool other = row->below.type != TYPE_NONE && !origin_is(&marks->origin, entry->in->lower, entry->name);
  return flags | ROW_COPIED | (other ? ROW_COPIED_OTHER : 0);
}

static enum row_kind kind_of(enum file_type type) {
  switch (type) {
    case TYPE_FILE: return ROW_FILE;
    case TYPE_FOLDER: return ROW_FOLDER;
    case TYPE_LINK: return ROW_LINK;
    default: return ROW_OTHER;
  }
}

/* A listing needs the marks of folders, and of files that may be whiteouts. The stat of a character device is enough
   to recognise a whiteout. */
static bool needs_marks(const struct walk *walk, const struct entry *entry, const struct sight *above) {
  if (walk->look == LOOK_TO_APPLY) return above->type != TYPE_CHARACTER;
  return above->type == TYPE_FOLDER || (entry->in->whiteouts && above->type == TYPE_FILE && above->size == 0);
}

static int take_entry(struct walk *walk, const struct entry *entry) {
  const struct folder *in = entry->in;
  struct row row = {.path = entry->path, .folder = in->upper, .name = entry->name};
  struct stat status;
  struct marks marks = {0};
  bool long_path = is_too_long(entry->path);
  if (long_path && walk->look == LOOK_TO_LIST) return unread_long(walk, entry->path);
  if (fstatat(in->upper, entry->name, &status, AT_SYMLINK_NOFOLLOW) < 0) return unread(walk, entry->path);
  sight_of(&status, &row.above);
  if (long_path) {
    row.kind = kind_of(row.above.type);
    row.refusal = TOO_LONG;
    tell(walk, &row);
    return 0;
  }
  if (needs_marks(walk, entry, &row.above) && marks_of(in->upper, entry->name, &marks) < 0) return unread(walk, entry->path);
  if (in->lower >= 0 && sight_in(walk, in->lower, entry->name, &row.below) < 0) return -1;
  if (is_whiteout(&status, &marks, in->whiteouts)) {
    /* A folder without a lower folder, or one that hides it, needs no whiteouts. */
    bool redundant = in->lower < 0 || (in->covered && row.below.type == TYPE_NONE);
    return redundant ? 0 : take_removed(walk, entry, &row.below, in->covered ? ROW_HIDDEN : 0);
  }
  row.kind = kind_of(row.above.type);
  row.flags = flags_of(walk, entry, &row, &status, &marks);
  row.refusal = refusal_of(&status, &marks);
  if (row.kind == ROW_FOLDER) return take_folder(walk, entry, &row, &marks);
  if (row.below.type == TYPE_FOLDER && take_below(walk, entry, &row) < 0) return -1;
  tell(walk, &row);
  return 0;
}

int overlay_walk(int upper, int lower, enum look look, row_taker take, void *context) {
  struct walk walk = {.look = look, .take = take, .context = context,
                      .comparable = look == LOOK_TO_LIST ? CONTENT_MAX : UINT64_MAX};
  struct row row = {.kind = ROW_FOLDER, .path = "", .folder = upper, .name = "."};
  struct stat above, below;
  struct marks marks;
  if (fstat(upper, &above) < 0 || fstat(lower, &below) < 0 || marks_of(upper, ".", &marks) < 0) return -1;
  sight_of(&above, &row.above);
  sight_of(&below, &row.below);
  if (marks.opaque || marks.elsewhere) row.refusal = "the layer of changes hides the whole project";
  tell(&walk, &row);
  const struct folder folder = {"", upper, lower, marks.whiteouts, marks.opaque};
  return take_content(&walk, &folder);
}

void overlay_walk_allow_files(void) {
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) < 0) return;
  files.rlim_cur = files.rlim_max;
  /* Refused, ignoring: a deep folder is then an error of the walk. */
  (void)setrlimit(RLIMIT_NOFILE, &files);
}
