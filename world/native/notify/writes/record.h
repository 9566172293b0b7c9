/* Calls that change files: looked up before they go on, reported after, and refused or put to the broker at a
   mount of this world. */
#ifndef SUBSTRATE_NOTIFY_WRITES_RECORD_H
#define SUBSTRATE_NOTIFY_WRITES_RECORD_H

#include <linux/seccomp.h>
#include <stdbool.h>

struct command;

struct removal {
  const char *path; /* absolute path */
  int refused;      /* the kernel's answer to the call */
  const char *target; /* absolute target of a rename; NULL for a removal */
};

/* Asks the broker. True: the broker answers the call later. */
typedef bool (*removal_asker)(int listener, const struct seccomp_notif *notice, const struct command *command,
                              const struct removal *removal);
/* Registers the asker for renames and removals that the kernel would refuse. Call before the first
   notification. */
void record_open(removal_asker ask);
/* A notice_handler. False: the call changes no file. */
bool record_serve(int listener, const struct seccomp_notif *notice, struct command *command);

#endif
