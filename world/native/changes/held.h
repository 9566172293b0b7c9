#ifndef SUBSTRATE_CHANGES_HELD_H
#define SUBSTRATE_CHANGES_HELD_H

/* `substrate-init held`: reads and applies the changes held in overlays. Requests on standard input, answers
   on standard output, until the input ends. Runs as its caller, outside every world. */
int held_run(void);

#endif
