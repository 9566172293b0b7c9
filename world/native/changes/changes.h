#ifndef SUBSTRATE_CHANGES_CHANGES_H
#define SUBSTRATE_CHANGES_CHANGES_H

/* `substrate-init changes`: lists the changes in upper layers for replies, until the input ends. */
int changes_run(void);

#endif
