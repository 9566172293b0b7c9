/* Giving up privileges, for good. */
#ifndef SUBSTRATE_CREDENTIALS_H
#define SUBSTRATE_CREDENTIALS_H

#include <stdint.h>

/* No new privileges, no capability in any set, and no way back through uid 0. Ends the world on failure. */
void credentials_drop(void);

/* Not ptrace-able, and /proc/<pid>/{fd,mem,environ} closed, for what runs under the same uid. */
void credentials_hide(void);

/* Changes to another user and group and keeps the capabilities: a container runtime starts us as its root, and the
   caller's files are to stay the caller's. Supplementary groups go. */
void credentials_become(uint32_t uid, uint32_t gid);

#endif
