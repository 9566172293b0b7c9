#define _GNU_SOURCE
#include "outer/setup.h"

#include <limits.h>
#include <sched.h>
#include <string.h>

#include "lib/fields.h"
#include "lib/frames.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

#define KNOWN_NAMESPACES                                                                            \
  ((uint64_t)(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |            \
              CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_NEWTIME))
/* Without a pid namespace the commands would survive init; without a mount namespace there is no world. */
#define NEEDED_NAMESPACES ((uint64_t)(CLONE_NEWNS | CLONE_NEWPID))

static bool take_id(const struct field *field, uint32_t *id, bool *has) {
  uint64_t value;
  if (*has || !field_u64(field, &value) || value > UINT32_MAX - 1) return false;
  *id = (uint32_t)value;
  *has = true;
  return true;
}

static bool take_hostname(struct field *field, struct setup *setup) {
  static char hostname[HOSTNAME_MAX + 1];
  if (setup->hostname != NULL || !field_is_string(field, 1) || field->length > HOSTNAME_MAX) return false;
  memcpy(hostname, field->data, field->length);
  hostname[field->length] = 0;
  setup->hostname = hostname;
  return true;
}

static bool take_project(const struct field *field, struct setup *setup) {
  static char project[PATH_MAX];
  if (setup->project != NULL || !field_is_string(field, 2) || field->length >= PATH_MAX) return false;
  if (field->data[0] != '/' || field->data[field->length - 1] == '/') return false;
  memcpy(project, field->data, field->length);
  project[field->length] = 0;
  setup->project = project;
  return true;
}

static bool take_program(const struct field *field, const uint8_t **program, size_t *length) {
  if (*program != NULL || field->length == 0 || field->length % FILTER_INSTRUCTION != 0) return false;
  *program = field->data;
  *length = field->length / FILTER_INSTRUCTION;
  return *length <= FILTER_MAX;
}

static const char *hand_over(const struct field *field, const struct setup_taker *takers) {
  for (const struct setup_taker *taker = takers; taker->tag != 0; taker++) {
    if (taker->tag == field->tag) return taker->take(field->data, field->length);
  }
  return "SETUP: unknown tag";
}

const char *setup_parse(uint8_t *payload, size_t length, const struct setup_taker *takers, struct setup *setup) {
  *setup = (struct setup){.mounts = payload, .mounts_length = length};
  struct field_reader reader = {payload, payload + length};
  struct field field;
  const char *wrong;
  bool has_namespaces = false;
  int got;
  while ((got = field_next(&reader, &field)) > 0) {
    switch (field.tag) {
      case TAG_NAMESPACES:
        if (has_namespaces || !field_u64(&field, &setup->namespaces)) return "SETUP: bad NAMESPACES";
        has_namespaces = true;
        break;
      case TAG_UID:
        if (!take_id(&field, &setup->uid, &setup->has_uid)) return "SETUP: bad UID";
        break;
      case TAG_GID:
        if (!take_id(&field, &setup->gid, &setup->has_gid)) return "SETUP: bad GID";
        break;
      case TAG_HOSTNAME:
        if (!take_hostname(&field, setup)) return "SETUP: bad HOSTNAME";
        break;
      case TAG_NETWORK:
        if (setup->network != 0 || !field_u64(&field, &setup->network) || setup->network > INT32_MAX) {
          return "SETUP: bad NETWORK";
        }
        break;
      case TAG_HOST_NETWORK:
        if (setup->host_network != 0 || !field_u64(&field, &setup->host_network) || setup->host_network != 1) {
          return "SETUP: bad HOST_NETWORK";
        }
        break;
      case TAG_SECCOMP:
        if (!take_program(&field, &setup->filter, &setup->filter_length)) return "SETUP: bad SECCOMP";
        break;
      case TAG_SECCOMP_GUARD:
        if (!take_program(&field, &setup->guard, &setup->guard_length)) return "SETUP: bad SECCOMP_GUARD";
        break;
      case TAG_COMMAND_FILTER:
        if (!take_program(&field, &setup->command_filter, &setup->command_filter_length)) {
          return "SETUP: bad COMMAND_FILTER";
        }
        break;
      case TAG_RECORD_FILTER:
        if (!take_program(&field, &setup->record_filter, &setup->record_filter_length)) {
          return "SETUP: bad RECORD_FILTER";
        }
        break;
      case TAG_PROJECT:
        if (!take_project(&field, setup)) return "SETUP: bad PROJECT";
        break;
      case TAG_LIMIT:
        if (!limits_take(&field, &setup->limits)) return "SETUP: bad LIMIT";
        break;
      case TAG_MOUNT:
        if (field.length == 0) return "SETUP: empty MOUNT";
        break;
      case TAG_NESTED:
        if (setup->nested != 0 || !field_u64(&field, &setup->nested) || setup->nested < NESTED_NAMESPACES ||
            setup->nested > NESTED_MOUNTS) {
          return "SETUP: bad NESTED";
        }
        break;
      case TAG_REPORTS:
        if (setup->reports != 0 || !field_u64(&field, &setup->reports) || setup->reports != 1) {
          return "SETUP: bad REPORTS";
        }
        break;
      default:
        if ((wrong = hand_over(&field, takers)) != NULL) return wrong;
    }
  }
  if (got < 0) return "SETUP: malformed field";
  if (setup->guard != NULL && setup->filter == NULL) return "SETUP: a SECCOMP_GUARD needs a SECCOMP";
  if ((setup->namespaces & ~KNOWN_NAMESPACES) != 0) return "SETUP: unknown namespace";
  if ((setup->namespaces & NEEDED_NAMESPACES) != NEEDED_NAMESPACES) {
    return "SETUP: a world needs its own mount and pid namespace";
  }
  if ((setup->namespaces & CLONE_NEWUSER) != 0 && !(setup->has_uid && setup->has_gid)) {
    return "SETUP: a user namespace needs UID and GID";
  }
  /* Without a user namespace between, a mount of the world would not be locked in a command's mount namespace. */
  if (setup->nested != 0 && (setup->namespaces & CLONE_NEWUSER) == 0) return "SETUP: NESTED needs a user namespace";
  if (setup->network != 0 && (setup->namespaces & CLONE_NEWNET) != 0) {
    return "SETUP: a network namespace is joined or unshared";
  }
  bool own_network = setup->network != 0 || (setup->namespaces & CLONE_NEWNET) != 0;
  if (own_network == (setup->host_network == 1)) return "SETUP: a network namespace of its own, or HOST_NETWORK";
  /* The queue of telemetry's datagrams, and its abstract addresses, would be the host's. */
  if (setup->host_network == 1 && setup->reports == 1) return "SETUP: HOST_NETWORK excludes REPORTS";
  if (setup->hostname != NULL && (setup->namespaces & CLONE_NEWUTS) == 0) {
    return "SETUP: a host name needs its own UTS namespace";
  }
  return NULL;
}

int setup_next_mount(struct mount_cursor *cursor, struct mount_step *step) {
  struct field_reader reader = {cursor->at, cursor->end};
  struct field field;
  for (;;) {
    int got = field_next(&reader, &field);
    if (got <= 0) return got;
    if (field.tag == TAG_MOUNT) break;
  }
  cursor->at = reader.at;
  char *text = field_terminate(&field);
  char *end = text + field.length;
  step->count = 0;
  for (char *part = text; part <= end; part += strlen(part) + 1) {
    if (step->count == MOUNT_PARTS_MAX) return -1;
    step->parts[step->count++] = part;
  }
  return 1;
}
