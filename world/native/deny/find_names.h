/* `substrate-init find`: finds paths in the host's trees that match patterns, beside the broker. */
#ifndef SUBSTRATE_DENY_FIND_NAMES_H
#define SUBSTRATE_DENY_FIND_NAMES_H

/* Reads fields DENY and ZONE from standard input, to its end. Writes each path and a NUL, then an empty path,
   then "whole" or, when the walk reached its limit of folders, "cut", and a NUL. On any failure exits with
   1. */
_Noreturn void find_names_run(void);

#endif
