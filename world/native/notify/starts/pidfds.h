/* Watches processes of commands until they end, with a pidfd for each. */
#ifndef SUBSTRATE_NOTIFY_STARTS_PIDFDS_H
#define SUBSTRATE_NOTIFY_STARTS_PIDFDS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct tracked {
  pid_t pid; /* 0: free slot */
  int pidfd;
  uint32_t command, number;
  int next; /* next slot of the bucket or of the free list; -1 at the end */
};

/* Bounds the watched processes by PID 1's descriptor limit. Returns the number of descriptors reserved for
   them. */
uint64_t pidfds_fit(uint64_t descriptors);
/* Prepares the table before any other call; repeated calls do nothing. */
void pidfds_open(void);
/* Watches a process. Returns its slot; -1: the table is full, and its end goes unnoticed. */
int pidfds_add(pid_t pid, uint32_t command, uint32_t number);
/* Returns the slot of a pid, -1: not watched. The slot may belong to an earlier process with the same pid. */
int pidfds_find(pid_t pid);
struct tracked *pidfds_at(int slot);
/* Collects young processes that have ended, children before their parents. */
#define PIDFDS_YOUNG 64
int pidfds_look(int ended[PIDFDS_YOUNG]);
/* Milliseconds until the next pidfds_look, -1: no young process. */
int pidfds_look_in(void);
/* True when the process has ended and its exit status is as complete as the kernel reports. */
bool pidfds_has_ended(int slot);
/* Reads the exit status in the form of wait(2). False before Linux 6.15, where only the parent gets the
   status. */
bool pidfds_status(int slot, uint32_t *status);
void pidfds_forget(int slot);
/* Returns the command's first slot from `slot` on, -1 at the end. */
int pidfds_of(uint32_t command, int slot);

#endif
