/* Calls that change files: looked up before they are let go on, told after, and refused or asked about where a mount of this world stands. */
#ifndef SUBSTRATE_NOTIFY_WRITES_RECORD_H
#define SUBSTRATE_NOTIFY_WRITES_RECORD_H

#include <linux/seccomp.h>
#include <stdbool.h>

struct command;

struct removal {
  const char *path; /* absolute */
  int refused;      /* what the kernel will say to the call */
  const char *target; /* where it is to go, absolute; NULL: it is to be removed */
};

/* True: the broker is asked about this call, and answers it later. */
typedef bool (*removal_asker)(int listener, const struct seccomp_notif *notice, const struct command *command,
                              const struct removal *removal);
/* Before the first call: who is asked where the kernel would refuse to take a name away. */
void record_open(removal_asker ask);
/* A notice_handler. False: it is no such call. */
bool record_serve(int listener, const struct seccomp_notif *notice, struct command *command);

#endif
