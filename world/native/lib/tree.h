/* The processes below one process, read from procfs. */
#ifndef SUBSTRATE_LIB_TREE_H
#define SUBSTRATE_LIB_TREE_H

#include <sys/types.h>

/* One look sees at most this many; what ends a tree looks again until nothing is left. */
#define TREE_MAX 32768

struct tree_process {
  pid_t pid;
  pid_t parent;
};

/* Descendants of `root`, parents before children, in a static table. Their number in `*count`.
   `deep` 0: only the direct children. */
const struct tree_process *tree_below(int proc, pid_t root, int deep, int *count);

/* The parent of a process or thread; -1 when it is gone. */
pid_t tree_parent(int proc, pid_t pid);

/* The child of PID 1 above a process or thread; 0 when one of them has gone meanwhile. */
pid_t tree_top(int proc, pid_t pid);

/* Sends a signal to every descendant. Returns how many there were. */
int tree_signal(int proc, pid_t root, int deep, int signal);
/* PID 1: kills everything else and reaps it, again and again for a second at most. */
void tree_end_all(void);

#endif
