/* The broker's frames and their handlers. */
#ifndef SUBSTRATE_RUN_REQUESTS_H
#define SUBSTRATE_RUN_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

/* Serves the received frames. False: an EXEC waits for a leader, and later frames wait too. */
bool requests_serve(int proc);
/* No leader could be made: fails a waiting EXEC. */
void requests_fail_waiting(int error);
/* Kills leaders that missed their deadline. Returns milliseconds until the next deadline, -1: no deadline. */
int requests_check_deadlines(int proc);

#endif
