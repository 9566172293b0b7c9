/* An inotify watch: its folder, and the rules that may match there. */
#ifndef SUBSTRATE_DENY_FOLDER_WATCHES_H
#define SUBSTRATE_DENY_FOLDER_WATCHES_H

#include <sys/inotify.h>

#include "deny/rules.h"

struct watched {
  struct watched *next;
  int descriptor;
  const struct rule_states *states;
  char *path;
};

/* Watches an open folder; a repeated watch updates the path. Returns 0 or the errno. */
int folder_watch(int events, int folder, const char *path, const struct rule_states *states);
/* Finds a watch. NULL: forgotten. */
const struct watched *folder_find(int descriptor);
void folder_forget(int descriptor);
/* True when an event is available, after reading more if necessary. */
bool folder_events_wait(int events);
/* Takes the next event. */
const struct inotify_event *folder_event(void);
/* Forgets all watches. */
void folders_forget(void);

#endif
