#define _GNU_SOURCE
#include "deny/folder_watches.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "lib/failure.h"

#define BUCKETS 4096
/* Events include disappearance: anybody may recreate a known name after its removal. */
#define TOLD (IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_ONLYDIR)

static struct watched *table[BUCKETS];
/* Events read and not yet handled: a failure of the world in between still handles the rest. */
static _Alignas(struct inotify_event) char buffer[16384];
static ssize_t filled, taken;

static struct watched **slot(int descriptor) {
  struct watched **link = &table[(unsigned)descriptor % BUCKETS];
  while (*link != NULL && (*link)->descriptor != descriptor) link = &(*link)->next;
  return link;
}

const struct watched *folder_find(int descriptor) {
  return *slot(descriptor);
}

void folder_forget(int descriptor) {
  struct watched **link = slot(descriptor);
  struct watched *gone = *link;
  if (gone == NULL) return;
  *link = gone->next;
  free(gone->path);
  free(gone);
}

void folders_forget(void) {
  for (int i = 0; i < BUCKETS; i++) {
    while (table[i] != NULL) folder_forget(table[i]->descriptor);
  }
}

/* Watches a folder through the working directory: inotify takes a path and no descriptor, and "." needs no
   procfs and cannot be swapped. */
static int add(int events, int folder) {
  if (fchdir(folder) < 0) return -1;
  int descriptor = inotify_add_watch(events, ".", TOLD);
  int error = errno;
  if (chdir("/") < 0) return -1;
  errno = error;
  return descriptor;
}

int folder_watch(int events, int folder, const char *path, const struct rule_states *states) {
  int descriptor = add(events, folder);
  if (descriptor < 0) return errno;
  char *copy = strdup(path);
  if (copy == NULL) return ENOMEM;
  struct watched **link = slot(descriptor);
  if (*link == NULL) *link = calloc(1, sizeof **link);
  if (*link == NULL) {
    free(copy);
    return ENOMEM;
  }
  free((*link)->path);
  (*link)->descriptor = descriptor;
  (*link)->states = states;
  (*link)->path = copy;
  return 0;
}

bool folder_events_wait(int events) {
  if (taken < filled) return true;
  taken = 0;
  filled = read(events, buffer, sizeof buffer);
  if (filled < 0 && errno != EAGAIN && errno != EINTR) fail_world("denied names", "inotify", errno);
  return filled > 0;
}

const struct inotify_event *folder_event(void) {
  const struct inotify_event *event = (const void *)(buffer + taken);
  taken += (ssize_t)(sizeof *event + event->len);
  return event;
}
