/* Finds the process that has a socket open. */
#ifndef SUBSTRATE_RUN_OWNER_H
#define SUBSTRATE_RUN_OWNER_H

#include <stdint.h>

/* Answers the question with OWNED: the first process below a leader that has the socket open. */
void owner_send(int proc, uint32_t question, uint64_t inode);

#endif
