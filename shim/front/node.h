/* Becoming the CLI in Node, which knows every verb and option. */
#ifndef SUBSTRATE_FRONT_NODE_H
#define SUBSTRATE_FRONT_NODE_H

/* Not an exit code: nothing has run, and Node takes over. */
#define TO_NODE (-2)

/* Replaces this program by Node with the checkout's launcher and the same words. Returns an exit code only when
   no Node can be started. */
int node_become(char *const words[]);

#endif
