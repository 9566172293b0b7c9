/* Answering a listener: what a call is decides who deals with it. */
#ifndef SUBSTRATE_NOTICES_H
#define SUBSTRATE_NOTICES_H

struct command;

/* One call waits at a listener of this command's. */
void notice_serve(int listener, struct command *command);
/* One waits at the listener of all: whose it is is found by the process tree. */
void notice_serve_world(int listener);

#endif
