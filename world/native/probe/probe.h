#ifndef PROBE_H
#define PROBE_H

/* Tries one thing that the host must allow and prints one line: `ok …`, or `failed STEP ERRNO …`. Returns an exit code. */
int probe_run(int count, char *const *words);

#endif
