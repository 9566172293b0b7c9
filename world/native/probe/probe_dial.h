#ifndef PROBE_DIAL_H
#define PROBE_DIAL_H

/* Connects to an IPv4 address and port like any program. Prints `ok MICROSECONDS`, or `failed STEP ERRNO
   MICROSECONDS`. */
int probe_dial(const char *address, const char *port);

#endif
