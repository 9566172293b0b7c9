/* Gives up privileges for good. */
#ifndef SUBSTRATE_LIB_CREDENTIALS_H
#define SUBSTRATE_LIB_CREDENTIALS_H

#include <stdbool.h>
#include <stdint.h>

/* Sets no_new_privs, empties all capability sets, and prevents regaining them through uid 0. Ends the world
   on failure. */
void credentials_drop(void);

/* For PID 1 of a world: like credentials_drop, but keeps in the permitted set the right to read every process of
   the world, unless the host withholds it, and with guarded names (`mounts`) the rights to mount and to enter every
   folder of the user. They take effect only between the calls below. */
void credentials_drop_but_supervise(bool mounts);
void credentials_raise(void);
void credentials_lower(void);

/* CAP_SYS_PTRACE, for the memory, working folder and root of a calling process that is not dumpable. Returns false where the
   host withholds the capability. */
bool credentials_raise_reading(void);
void credentials_lower_reading(void);

/* Prevents ptrace, and access to /proc/<pid>/{fd,mem,environ}, by processes of the same uid. */
void credentials_hide(void);

/* Changes user and group and keeps the capabilities: a container runtime starts init as its root, but files
   must belong to the caller's user. Drops supplementary groups. */
void credentials_become(uint32_t uid, uint32_t gid);

#endif
