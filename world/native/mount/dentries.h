/* What the kernel remembers of the names below host overlays. An overlay never compares a name that it has looked up with the host
   again: a file that the host replaced, removed or made would look to a warm world as it did before. So PID 1 has every host overlay
   forget its names while nobody is inside, and before a command begins that others were inside before. */
#ifndef SUBSTRATE_MOUNT_DENTRIES_H
#define SUBSTRATE_MOUNT_DENTRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Keeps the detached mount `tree` in view; it stays the caller's. 0, or -1 with errno: more than can be kept. */
int dentries_watch(int tree);

/* No longer the host overlay of that device: its folder has gone. */
void dentries_unwatch(dev_t device);

/* In the forker: closes what PID 1 alone needs. */
void dentries_let_go(void);

/* With full capabilities: tries each host overlay. Afterwards those that this kernel lets nobody refresh are left alone. */
void dentries_start(void);
/* How many those are. */
size_t dentries_kept(void);
/* Of so many descriptors, how many the others take at most. */
uint64_t dentries_fit(uint64_t descriptors);
/* True when PID 1 must stay able to refresh some. */
bool dentries_any(void);

/* Before a command begins: everything that the host did until now is seen by it. */
void dentries_forget(void);
/* When there is nothing else to do. Milliseconds until it wants to be asked again, -1: not by itself. */
int dentries_rest(bool somebody_runs);

#endif
