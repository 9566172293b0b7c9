/* Which folder an inotify watch is on, and what may match in it. */
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

/* Watches the open folder; watching it again under another path moves it there. 0, or the errno. */
int folder_watch(int events, int folder, const char *path, const struct rule_states *states);
/* NULL: it was forgotten. */
const struct watched *folder_find(int descriptor);
void folder_forget(int descriptor);
/* Whether there is an event to take. */
bool folder_events_wait(int events);
/* The next one. */
const struct inotify_event *folder_event(void);
/* All of them. */
void folders_forget(void);

#endif
