/* Gives up privileges for good. */
#ifndef SUBSTRATE_LIB_CREDENTIALS_H
#define SUBSTRATE_LIB_CREDENTIALS_H

#include <stdbool.h>
#include <stdint.h>

/* Sets no_new_privs, empties all capability sets, and prevents regaining them through uid 0. Ends the world
   on failure. */
void credentials_drop(void);

/* For PID 1 of a world: like credentials_drop, but keeps the right to read the memory of every process of the
   world. With guarded names (`mounts`) the rights to mount and to enter every folder of the user stay in the
   permitted set: they take effect only between the next two calls. A right that the host withholds is left out. */
void credentials_drop_but_supervise(bool mounts);
void credentials_raise(void);
void credentials_lower(void);

/* Prevents ptrace, and access to /proc/<pid>/{fd,mem,environ}, by processes of the same uid. */
void credentials_hide(void);

/* Changes user and group and keeps the capabilities: a container runtime starts init as its root, but files
   must belong to the caller's user. Drops supplementary groups. */
void credentials_become(uint32_t uid, uint32_t gid);

#endif
