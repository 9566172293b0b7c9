/* `substrate-init changes`: lists the changes in upper layers, for requests on standard input. */
#ifndef SUBSTRATE_CHANGES_CHANGES_H
#define SUBSTRATE_CHANGES_CHANGES_H

_Noreturn void changes_run(void);

#endif
