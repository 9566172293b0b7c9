/* Giving up privileges, for good. */
#ifndef SUBSTRATE_CREDENTIALS_H
#define SUBSTRATE_CREDENTIALS_H

/* No new privileges, no capability in any set, and no way back through uid 0. Ends the world on failure. */
void credentials_drop(void);

/* Not ptrace-able, and /proc/<pid>/{fd,mem,environ} closed, for what runs under the same uid. */
void credentials_hide(void);

#endif
