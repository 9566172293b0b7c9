#ifndef PROBE_H
#define PROBE_H

/* Tries a primitive that the host must allow, and prints a line: `ok …`, or `failed STEP ERRNO …`. Returns an
   exit code. */
int probe_run(int count, char *const *words);

#endif
