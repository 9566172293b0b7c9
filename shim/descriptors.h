/* Descriptors of the shim's own. */
#ifndef SUBSTRATE_SHIM_DESCRIPTORS_H
#define SUBSTRATE_SHIM_DESCRIPTORS_H

/* Moves one that is new behind the standard ones, closed at exec(2): where the program has none of those, messages for a person
   still go to descriptor 2, whatever stands there. Negative stays so, with errno. */
int above_standard(int fd);

#endif
