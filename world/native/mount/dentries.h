/* The kernel's cached names (dentries) below host overlays. An overlay never compares a cached name with the
   host again: a warm world would miss files that the host has replaced, removed or created. So PID 1 drops
   the cached names of every host overlay while no command runs, and before a command that follows others. */
#ifndef SUBSTRATE_MOUNT_DENTRIES_H
#define SUBSTRATE_MOUNT_DENTRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Registers the detached mount `tree`; the caller keeps the descriptor. 0, or -1 with errno; mounts beyond
   the limit are counted only. */
int dentries_watch(int tree);

/* Forgets the host overlay of that device: its folder is gone. */
void dentries_unwatch(dev_t device);

/* Closes PID 1's descriptors, in the forker. */
void dentries_let_go(void);

/* Tries to refresh each host overlay, with full capabilities. Overlays that this kernel refuses to refresh
   are left alone afterwards. */
void dentries_start(void);
/* Returns the number of host overlays that are not refreshed. */
size_t dentries_kept(void);
/* Bounds the pending contexts by PID 1's descriptor limit. Returns the most descriptors used here. */
uint64_t dentries_fit(uint64_t descriptors);
/* True when PID 1 must keep the right to refresh overlays. */
bool dentries_any(void);

/* Drops cached names before a command begins, so that the command sees the host's changes. */
void dentries_forget(void);
/* Does background work while PID 1 is idle. Returns milliseconds until the next call, -1: no call needed. */
int dentries_rest(bool somebody_runs);

#endif
