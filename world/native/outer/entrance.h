/* How init came to run: started by the broker with the channel as a descriptor, or by a container runtime, which hands
   down no descriptor and shows the host's tree at a place of its own. */
#ifndef SUBSTRATE_OUTER_ENTRANCE_H
#define SUBSTRATE_OUTER_ENTRANCE_H

/* Takes the arguments. None: the channel is open already. Otherwise ROOT, where the host's tree is seen, and FOLDER, that
   holds the broker's socket: connects it as the channel. Exits with a word on stderr when that fails: there is no
   channel yet to say it on. */
void entrance_take(int argc, char *const *argv);

/* ROOT, an absolute path; empty when the host's tree is our own root. */
const char *entrance_root(void);

#endif
