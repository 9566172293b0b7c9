/* How init was started: by the broker, with the channel as a descriptor; or by a container runtime, which
   passes no descriptor and mounts the host's tree at another path. */
#ifndef SUBSTRATE_OUTER_ENTRANCE_H
#define SUBSTRATE_OUTER_ENTRANCE_H

/* Takes the arguments. Without arguments the channel is open already. Otherwise ROOT, the path of the host's
   tree, and FOLDER, the folder of the broker's socket: connects to the socket as the channel. On failure
   exits with a message on stderr: the channel does not exist yet. */
void entrance_take(int argc, char *const *argv);

/* Returns ROOT, an absolute path; empty when the host's tree is init's own root. */
const char *entrance_root(void);

#endif
