/* The SETUP frame, checked: namespaces, identity, mount operations. */
#ifndef SUBSTRATE_OUTER_SETUP_H
#define SUBSTRATE_OUTER_SETUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "outer/limits.h"

#define MOUNT_PARTS_MAX 8
#define HOSTNAME_MAX 64
/* The kernel's limit (BPF_MAXINSNS). */
#define FILTER_MAX 4096
#define FILTER_INSTRUCTION 8

/* Values of the field NESTED. */
#define NESTED_NAMESPACES 1
#define NESTED_MOUNTS 2

struct mount_step {
  int count; /* parts; parts[0] is the operation's name */
  const char *parts[MOUNT_PARTS_MAX];
};

struct setup {
  uint64_t namespaces;
  uint32_t uid;
  uint32_t gid;
  bool has_uid, has_gid;
  uint64_t network; /* pid whose network namespace to join; 0: unshare a network namespace like the others */
  uint64_t host_network; /* 1: neither unshare nor join a network namespace */
  uint64_t nested;  /* NESTED_*; 0: commands make no namespaces */
  const char *hostname; /* NULL: keep the namespace's initial host name */
  const uint8_t *filter; /* instructions of a BPF program, unaligned; NULL: no filter */
  size_t filter_length;  /* in instructions */
  const uint8_t *guard;  /* for log mode: what stays refused; NULL: the filter itself refuses */
  size_t guard_length;
  const uint8_t *command_filter;
  size_t command_filter_length;
  const uint8_t *record_filter; /* replaces command_filter where the kernel grants its listener */
  size_t record_filter_length;
  const char *project; /* folder whose file changes are reported; NULL: no reports */
  struct limits limits;
  uint64_t reports;     /* 1: commands may send telemetry */
  uint8_t *mounts;      /* the payload itself, for setup_next_mount */
  size_t mounts_length;
};

/* A handler in another room for the fields of a tag. */
struct setup_taker {
  uint16_t tag;
  const char *(*take)(const uint8_t *data, size_t length); /* NULL or the error */
};

/* Parses the payload. Returns NULL or the error. `takers` ends with tag 0. */
const char *setup_parse(uint8_t *payload, size_t length, const struct setup_taker *takers, struct setup *setup);

struct mount_cursor {
  uint8_t *at;
  uint8_t *end;
};

/* Splits the next MOUNT field in place. 1: a step, 0: the end, -1: too many parts or no parts. */
int setup_next_mount(struct mount_cursor *cursor, struct mount_step *step);

#endif
