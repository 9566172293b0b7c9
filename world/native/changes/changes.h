/* `substrate-init changes`: lists what upper layers hold, one after the other, for whoever asks on standard input. */
#ifndef SUBSTRATE_CHANGES_CHANGES_H
#define SUBSTRATE_CHANGES_CHANGES_H

_Noreturn void changes_run(void);

#endif
