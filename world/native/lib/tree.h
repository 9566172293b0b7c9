/* Processes below a process, read from procfs. */
#ifndef SUBSTRATE_LIB_TREE_H
#define SUBSTRATE_LIB_TREE_H

#include <sys/types.h>

/* Most processes seen in a single look; functions that end a tree repeat the look until no process is
   left. */
#define TREE_MAX 32768

struct tree_process {
  pid_t pid;
  pid_t parent;
};

/* Lists the descendants of `root`, parents before children, in a static table, with their number in `*count`.
   `deep` 0: direct children only. */
const struct tree_process *tree_below(int proc, pid_t root, int deep, int *count);

/* Returns the child of PID 1 above a process or thread; 0 when a process on the way has gone. */
pid_t tree_top(int proc, pid_t pid);

/* Sends a signal to every descendant. Returns their number. */
int tree_signal(int proc, pid_t root, int deep, int signal);
/* Kills and reaps every other process, repeatedly for at most a second (PID 1). */
void tree_end_all(void);

#endif
