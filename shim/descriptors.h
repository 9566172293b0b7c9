/* The shim's own descriptors. */
#ifndef SUBSTRATE_SHIM_DESCRIPTORS_H
#define SUBSTRATE_SHIM_DESCRIPTORS_H

/* Moves a new descriptor above 2, closed at exec(2): a program may start without descriptors 0 to 2, and
   messages for people still go to descriptor 2. Negative in, negative out, with errno kept. */
int above_standard(int fd);

#endif
