/* Giving up privileges, for good. */
#ifndef SUBSTRATE_LIB_CREDENTIALS_H
#define SUBSTRATE_LIB_CREDENTIALS_H

#include <stdint.h>

/* No new privileges, no capability in any set, and no way back through uid 0. Ends the world on failure. */
void credentials_drop(void);

/* PID 1 of a world with names to watch: like credentials_drop, but what it takes to mount and to look into every
   folder of the user stays in the permitted set. It counts only between the next two. */
void credentials_drop_but_mount(void);
void credentials_raise(void);
void credentials_lower(void);

/* Not ptrace-able, and /proc/<pid>/{fd,mem,environ} closed, for what runs under the same uid. */
void credentials_hide(void);

/* Changes to another user and group and keeps the capabilities: a container runtime starts us as its root, and the
   caller's files are to stay the caller's. Supplementary groups go. */
void credentials_become(uint32_t uid, uint32_t gid);

#endif
