/* PID 1's children: the forker and the leaders, and the strays that must not be. */
#ifndef SUBSTRATE_RUN_CHILDREN_H
#define SUBSTRATE_RUN_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct command;
struct leader;
struct order;

/* What is told of a command's leader. */
struct leader_events {
  void (*report)(struct command *command);   /* its reports are to be read */
  void (*orphaned)(struct command *command); /* it died without a last word */
};

/* Starts the forker. Before watch_open: it must not inherit the epoll. */
void children_start(int proc, int null, const struct leader_events *leader_events);
/* Begins to listen to the forker, and waits for its first leader. */
void children_watch(void);
/* Once it waited: whether each start of a program is told to a listener. */
bool children_gated(void);
/* The forker's socket is readable. 0, or the errno of a leader that could not be made. */
int children_take_birth(void);
/* A command lost its leader. Whoever killed that may have killed the forker too: then the world ends before the
   command's end is told, so that nobody is given a dying world. */
void children_expect_forker(void);
/* SIGCHLD: reaps, restarts what was stopped from inside, replaces idle leaders that were killed. */
void children_reap(void);
/* Ends what is a child of PID 1 without being the forker or a leader. True: look again soon. */
bool children_end_strays(void);

/* Whether nothing can be alive that belongs to no command: strays, and the children of leaders that were killed. */
bool children_settled(void);
/* Ends and reaps everything in the world, for a second at most. Nothing is started any more afterwards. */
void children_end_all(void);

/* The command below whose leader a process or thread stands. NULL: it is gone, or nobody's. */
struct command *children_owner(pid_t task);

/* True when a leader stands ready. */
bool leader_ready(void);
/* The idle leader's socket is readable: its runner hands over its listener. */
void leader_hear(void);
/* Something happened at the listener of the leader with this pid, 0: at the one of all. */
void children_listen(pid_t pid, uint32_t events);
/* Gives the job to the idle leader, and its outputs to the command. -1 with errno when it is gone. */
int leader_assign(struct command *command, const struct order *order, const void *payload, size_t length,
                  const int *fds, int fd_count);
/* Asks the forker for another leader, unless one is ready or on its way. */
void leader_request(void);
/* The leader said its last word. */
void leader_released(struct leader *leader, bool leaves_strays, bool group_killed);
/* The leader is gone, or will be at once, without a last word. */
void leader_lost(struct leader *leader);

#endif
