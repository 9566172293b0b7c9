/* List of changes in a tree: collected, sorted and hashed. */
#ifndef SUBSTRATE_CHANGES_CHANGE_LIST_H
#define SUBSTRATE_CHANGES_CHANGE_LIST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/sha256.h"

/* More than any build makes; the paths then fill some hundred MB. */
#define CHANGES_MAX 2000000
#define CHANGES_BYTES_MAX (512UL * 1024 * 1024)

/* Kinds, as sent: new, modified, deleted, new folder (also in place of a file), unreadable. */
#define CHANGE_WRITE 'w'
#define CHANGE_MOD 'm'
#define CHANGE_DELETE 'd'
#define CHANGE_FOLDER 'f'
#define CHANGE_UNREAD 'u'

struct change {
  struct change *next;
  mode_t before, after; /* 0: missing */
  uint64_t size;
  char kind;
  bool hashed; /* `content` holds digits; otherwise the change has no relevant content */
  char content[SHA256_HEX];
  char path[]; /* relative */
};

struct change_list {
  struct change *first;
  uint32_t count;
  uint64_t bytes; /* sum of path lengths */
  bool full;      /* changes were left out */
};

/* Adds a change with this path, otherwise zeroed. NULL: the list is full, and `full` is set. */
struct change *change_add(struct change_list *list, char kind, const char *path);
/* Sorts by the bytes of the paths. NULL without memory or changes. */
struct change **change_sorted(const struct change_list *list);
/* Hashes all changes in this order by the rules of world/overlay/tree-hash.ts; `hex` takes SHA256_HEX
   digits. */
void change_hash(struct change *const *sorted, uint32_t count, char *hex);
void change_list_free(struct change_list *list);

#endif
