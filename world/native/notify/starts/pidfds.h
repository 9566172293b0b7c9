/* Processes of commands that are watched until they end, one pidfd each. */
#ifndef SUBSTRATE_NOTIFY_STARTS_PIDFDS_H
#define SUBSTRATE_NOTIFY_STARTS_PIDFDS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct tracked {
  pid_t pid; /* 0: nobody is in this slot */
  int pidfd;
  uint32_t command, number;
  int next; /* of its bucket, or of the free slots; -1: none */
};

/* How many of so many descriptors are for them. */
uint64_t pidfds_fit(uint64_t descriptors);
/* Before any other call; more than once is nothing. */
void pidfds_open(void);
/* Its slot, -1: there is no room, and nobody hears how it ends. */
int pidfds_add(pid_t pid, uint32_t command, uint32_t number);
/* The slot of a process, -1: none. It may be one that had the pid before. */
int pidfds_find(pid_t pid);
struct tracked *pidfds_at(int slot);
/* Those that ended lately and that nobody was woken for, children before their parents. */
#define PIDFDS_YOUNG 64
int pidfds_look(int ended[PIDFDS_YOUNG]);
/* How long until that is due, ms, -1: there is none. */
int pidfds_look_in(void);
/* Whether it is gone, and told as far as it will ever be. */
bool pidfds_has_ended(int slot);
/* How it ended, as wait(2) has it. False: this kernel tells its parent alone (before Linux 6.15). */
bool pidfds_status(int slot, uint32_t *status);
void pidfds_forget(int slot);
/* The first slot of this command's from `slot` on, -1: no more. */
int pidfds_of(uint32_t command, int slot);

#endif
