/* The listing of a reply: rows of changed entries, sorted by the bytes of their paths, and a hash of all. Deleted lower
   names are rows of their own. */
#include "changes/changes.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "changes/answers.h"
#include "changes/content.h"
#include "changes/overlay_marks.h"
#include "changes/overlay_walk.h"
#include "lib/sha256.h"

/* More than any build makes; the paths then fill some hundred MB. */
#define CHANGES_MAX 2000000
#define CHANGES_BYTES_MAX (512UL * 1024 * 1024)
/* After a listing of more changes the process ends, to free its memory. */
#define LARGE 50000
/* Bytes of rows per answer. */
#define ANSWER_BYTES (64 * 1024)

/* UNREAD: a path that cannot be read. */
enum kind { KIND_NONE, KIND_WRITE, KIND_MOD, KIND_DELETE, KIND_DIR, KIND_UNREAD };
/* Words as hashed (world/overlay/tree-hash.ts). */
static const char *const WORDS[] = {"", "write", "mod", "delete", "dir", ""};

struct change {
  struct change *next;
  enum kind kind;
  unsigned mode; /* of the upper entry; 0: missing */
  bool hashed;   /* `content` holds digits; otherwise the change has no relevant content */
  char content[SHA256_HEX];
  const char *path; /* in `fields` */
  size_t length;
  char fields[]; /* the row as sent, which takes less memory than `struct row` */
};

struct listing {
  struct change *first;
  struct text scratch;
  uint32_t count;
  uint64_t bytes;    /* sum of path lengths */
  uint64_t hashable; /* bytes of content that may still be hashed */
  bool full;         /* changes were left out */
  bool unhashed;     /* some content was not read: too much, or no permission */
};

/* The rule is `changeKind` of world/overlay/tree-hash.ts, and what it does not know: an access list or `user.` attribute is a change. */
static enum kind kind_of(const struct row *row) {
  const struct sight *above = &row->above, *below = &row->below;
  bool is_folder = above->type == TYPE_FOLDER;
  if (row->kind == ROW_UNREAD) return KIND_UNREAD;
  if (*row->path == 0) return KIND_NONE;
  if (above->type == TYPE_NONE) return below->type == TYPE_NONE ? KIND_NONE : KIND_DELETE;
  if (below->type == TYPE_NONE) return is_folder ? KIND_DIR : KIND_WRITE;
  if (above->type != below->type) return is_folder ? KIND_DIR : KIND_MOD;
  return above->mode != below->mode || (row->flags & (ROW_CONTENT | ROW_ACCESS_LIST | ROW_EXTENDED)) != 0 ? KIND_MOD : KIND_NONE;
}

/* Returns NULL, and sets `full`, when the list is full. */
static struct change *add(struct listing *listing, enum kind kind, const struct row *row) {
  struct text *fields = &listing->scratch;
  size_t size = strlen(row->path) + 1;
  bool fits = listing->count < CHANGES_MAX && listing->bytes + size <= CHANGES_BYTES_MAX;
  fields->length = 0;
  row_write(fields, row);
  struct change *change = fits ? malloc(sizeof *change + fields->length) : NULL;
  if (change == NULL) {
    listing->full = true;
    return NULL;
  }
  *change = (struct change){.next = listing->first, .kind = kind, .mode = row->above.mode, .length = fields->length};
  memcpy(change->fields, fields->data, fields->length);
  change->path = change->fields + ROW_PATH_AT;
  listing->first = change;
  listing->count++;
  listing->bytes += size;
  return change;
}

static void add_unread(struct listing *listing, const char *path) {
  add(listing, KIND_UNREAD, &(struct row){.kind = ROW_UNREAD, .path = path});
  listing->unhashed = true;
}

static bool take_row(void *context, const struct row *row) {
  struct listing *listing = context;
  enum kind kind = kind_of(row);
  if (kind == KIND_UNREAD) add_unread(listing, row->path);
  if (kind == KIND_NONE || kind == KIND_UNREAD) return !listing->full;
  struct change *change = add(listing, kind, row);
  if (change == NULL || kind == KIND_DELETE || kind == KIND_DIR) return change != NULL;
  enum content content = content_hash(row->folder, row->name, &row->above, &listing->hashable, change->content);
  change->hashed = content == CONTENT_TAKEN;
  if (content == CONTENT_UNREADABLE) add_unread(listing, row->path);
  if (content == CONTENT_TOO_MUCH) listing->unhashed = true;
  return !listing->full;
}

/* strcmp compares as unsigned bytes (C11 7.24.4). */
static int by_path(const void *one, const void *other) {
  const struct change *const *left = one, *const *right = other;
  return strcmp((*left)->path, (*right)->path);
}

/* NULL without memory or changes. */
static struct change **sorted_changes(const struct listing *listing) {
  struct change **sorted = listing->count == 0 ? NULL : calloc(listing->count, sizeof *sorted);
  if (sorted == NULL) return NULL;
  uint32_t at = 0;
  for (struct change *change = listing->first; change != NULL; change = change->next) sorted[at++] = change;
  qsort(sorted, listing->count, sizeof *sorted, by_path);
  return sorted;
}

/* Hashes all changes by the rules of world/overlay/tree-hash.ts; `hex` takes SHA256_HEX digits. */
static void hash_changes(struct change *const *sorted, uint32_t count, char *hex) {
  struct sha256 hash;
  char mode[16];
  sha256_begin(&hash);
  for (uint32_t i = 0; i < count; i++) {
    const struct change *change = sorted[i];
    /* Each field ends with its NUL, so different lists never have the same bytes. */
    sha256_add(&hash, WORDS[change->kind], strlen(WORDS[change->kind]) + 1);
    sha256_add(&hash, change->path, strlen(change->path) + 1);
    int length = snprintf(mode, sizeof mode, "%o", change->mode);
    sha256_add(&hash, mode, (size_t)length + 1);
    if (change->hashed) sha256_add(&hash, change->content, SHA256_HEX);
    sha256_add(&hash, "\n", 1);
  }
  sha256_end(&hash, hex);
}

static void send_rows(struct change *const *sorted, uint32_t count, struct text *answer) {
  for (uint32_t i = 0; i < count; i++) {
    if (answer->length == 0) text_field(answer, "rows");
    text_add(answer, sorted[i]->fields, sorted[i]->length);
    if (answer->length < ANSWER_BYTES && i + 1 < count) continue;
    answers_send(answer);
    answer->length = 0;
  }
}

/* Answers `rows` as often as needed, then `end`, the hash or nothing, and `full` where changes were left out. */
static void send_listing(struct listing *listing, struct text *answer) {
  char hex[SHA256_HEX + 1] = "";
  struct change **sorted = sorted_changes(listing);
  if (sorted == NULL) listing->full |= listing->count > 0;
  else send_rows(sorted, listing->count, answer);
  bool whole = !listing->unhashed && !listing->full && listing->count > 0;
  if (whole) {
    hash_changes(sorted, listing->count, hex);
    hex[SHA256_HEX] = 0;
  }
  text_field(answer, "end");
  text_field(answer, hex);
  text_field(answer, listing->full ? "full" : "");
  free(sorted);
}

/* Returns the number of changes. */
static uint32_t list(int upper, int lower, struct text *answer) {
  struct listing listing = {.hashable = CONTENT_MAX};
  if (overlay_walk(upper, lower, LOOK_TO_LIST, take_row, &listing) < 0) add_unread(&listing, "");
  send_listing(&listing, answer);
  for (struct change *change = listing.first, *next; change != NULL; change = next) {
    next = change->next;
    free(change);
  }
  text_clear(&listing.scratch);
  return listing.count;
}

static void answer_errno(struct text *answer, const char *what, int error) {
  char number[16];
  snprintf(number, sizeof number, "%d", error);
  answer_failed(answer, what, number);
}

/* Follows no link: the broker asked with real paths. */
static int open_tree(const char *path, struct text *answer) {
  struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
  int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
  if (fd < 0) answer_errno(answer, path, errno);
  return fd;
}

/* Answers `list MARKS UPPER LOWER`; MARKS is `user` or `trusted`: the prefix of the marks that the overlay reads. */
static bool serve(struct text_reader *request, struct text *answer) {
  const char *verb = text_next(request), *marks = text_next(request);
  const char *upper_path = text_next(request), *lower_path = text_next(request);
  if (lower_path == NULL || strcmp(verb, "list") != 0) {
    answer_errno(answer, "request", EPROTO);
    return false;
  }
  answers_end_with_broker(true);
  marks_take(strcmp(marks, "user") == 0);
  int upper = open_tree(upper_path, answer);
  int lower = upper < 0 ? -1 : open_tree(lower_path, answer);
  bool large = lower >= 0 && list(upper, lower, answer) > LARGE;
  if (upper >= 0) close(upper);
  if (lower >= 0) close(lower);
  return !large;
}

int changes_run(void) {
  /* The process reads files of other users but runs none, and gains no rights through them. */
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) return 1;
  overlay_walk_allow_files();
  return answers_serve(serve);
}
