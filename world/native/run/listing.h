/* Answers LIST with the processes of all commands. */
#ifndef SUBSTRATE_RUN_LISTING_H
#define SUBSTRATE_RUN_LISTING_H

void listing_send(int proc);

#endif
