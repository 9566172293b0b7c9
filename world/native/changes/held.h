#ifndef SUBSTRATE_CHANGES_HELD_H
#define SUBSTRATE_CHANGES_HELD_H

/* `substrate-init held`: reads and applies the changes that overlays hold. Requests on standard input, answers on standard
   output; ends with its input. Runs as its caller, outside every world. */
int held_run(void);

#endif
