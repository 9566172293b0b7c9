/* Finds what patterns stand for in the host's trees, beside the broker: `substrate-init find`. */
#ifndef SUBSTRATE_DENY_FIND_NAMES_H
#define SUBSTRATE_DENY_FIND_NAMES_H

/* Reads fields DENY and ZONE from standard input, to its end. Writes each path and a NUL, then an empty path, then
   "whole" or "cut" and a NUL: the walk went into as many folders as it may. Ends with 1 where it cannot say either. */
_Noreturn void find_names_run(void);

#endif
