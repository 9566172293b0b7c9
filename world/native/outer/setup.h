/* The SETUP frame, checked: which namespaces, whose identity, which mount operations. */
#ifndef SUBSTRATE_OUTER_SETUP_H
#define SUBSTRATE_OUTER_SETUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "outer/limits.h"

#define MOUNT_PARTS_MAX 8
#define HOSTNAME_MAX 64
/* What the kernel takes (BPF_MAXINSNS). */
#define FILTER_MAX 4096
#define FILTER_INSTRUCTION 8

struct mount_step {
  int count; /* parts[0] is the operation's name */
  const char *parts[MOUNT_PARTS_MAX];
};

struct setup {
  uint64_t namespaces;
  uint32_t uid;
  uint32_t gid;
  bool has_uid, has_gid;
  uint64_t network; /* whose network namespace to join; 0: none, it is unshared like the others */
  const char *hostname; /* NULL: keep the one that the namespace began with */
  const uint8_t *filter; /* instructions of a BPF program, unaligned; NULL: none */
  size_t filter_length;  /* of them */
  const uint8_t *guard;  /* another: the filter notifies, and this says what stays refused; NULL: it refuses itself */
  size_t guard_length;
  const uint8_t *command_filter;
  size_t command_filter_length;
  const uint8_t *record_filter; /* instead of that one, where the kernel gives a listener for it */
  size_t record_filter_length;
  const char *project; /* below which changes of files are told; NULL: nowhere */
  struct limits limits;
  uint64_t reports;     /* 1: commands may be listened to */
  uint8_t *mounts;      /* the payload again, for setup_next_mount */
  size_t mounts_length;
};

/* Fields of one tag that another room keeps. */
struct setup_taker {
  uint16_t tag;
  const char *(*take)(const uint8_t *data, size_t length); /* NULL, or what is wrong with it */
};

/* NULL when the payload is sound, else what is wrong with it. `takers` ends with one whose tag is 0. */
const char *setup_parse(uint8_t *payload, size_t length, const struct setup_taker *takers, struct setup *setup);

struct mount_cursor {
  uint8_t *at;
  uint8_t *end;
};

/* Splits the next MOUNT field in place. 1: a step, 0: no more, -1: too many or no parts. */
int setup_next_mount(struct mount_cursor *cursor, struct mount_step *step);

#endif
