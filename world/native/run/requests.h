/* The broker's frames and what each of them sets off. */
#ifndef SUBSTRATE_RUN_REQUESTS_H
#define SUBSTRATE_RUN_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

/* Serves the frames that are there. False: an EXEC waits for a leader, nothing behind it is served. */
bool requests_serve(int proc);
/* No leader could be made: answers the EXEC that waits for it, if one does. */
void requests_fail_waiting(int error);
/* Ends leaders that did not end their tree in time. How long until the next one is due, -1: none. */
int requests_check_deadlines(int proc);

#endif
