/* LIST: the processes of all commands. */
#ifndef SUBSTRATE_LISTING_H
#define SUBSTRATE_LISTING_H

void listing_send(int proc);

#endif
