/* Changes of a tree, gathered, put in order and hashed. */
#ifndef SUBSTRATE_CHANGES_CHANGE_LIST_H
#define SUBSTRATE_CHANGES_CHANGE_LIST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/sha256.h"

/* More than any build makes; their paths then fill some hundred MB. */
#define CHANGES_MAX 2000000
#define CHANGES_BYTES_MAX (512UL * 1024 * 1024)

/* Kinds, as they are sent: new, other than before, gone, a folder that was none, and one that cannot be read. */
#define CHANGE_WRITE 'w'
#define CHANGE_MOD 'm'
#define CHANGE_DELETE 'd'
#define CHANGE_FOLDER 'f'
#define CHANGE_UNREAD 'u'

struct change {
  struct change *next;
  mode_t before, after; /* 0: nothing there */
  uint64_t size;
  char kind;
  bool hashed; /* `content` holds digits; without, there is no content that counts */
  char content[SHA256_HEX];
  char path[]; /* relative */
};

struct change_list {
  struct change *first;
  uint32_t count;
  uint64_t bytes; /* of paths */
  bool full;      /* there were more */
};

/* A copy with everything else 0, or NULL: the list is full, and says so from then on. */
struct change *change_add(struct change_list *list, char kind, const char *path);
/* By bytes of their paths. NULL for want of memory, or when there is none. */
struct change **change_sorted(const struct change_list *list);
/* Over all of them in order, by the rules of world/overlay/tree-hash.ts; `hex` takes SHA256_HEX digits. */
void change_hash(struct change *const *sorted, uint32_t count, char *hex);
void change_list_free(struct change_list *list);

#endif
