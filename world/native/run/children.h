/* PID 1's children: the forker and the leaders; other children are strays to be killed. */
#ifndef SUBSTRATE_RUN_CHILDREN_H
#define SUBSTRATE_RUN_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct command;
struct leader;
struct order;

/* Callbacks about a command's leader. */
struct leader_events {
  void (*report)(struct command *command);   /* reports can be read */
  void (*orphaned)(struct command *command); /* the leader died without a final report */
};

/* Starts the forker. Call before watch_open: the forker must not inherit the epoll. */
void children_start(int proc, int null, const struct leader_events *leader_events);
/* Begins to listen to the forker, and waits for its first leader. */
void children_watch(void);
/* True, after children_watch, when a listener gets every program start. */
bool children_gated(void);
/* Receives a leader from the forker's readable socket. Returns 0, or the errno of a leader that could not be
   made. */
int children_take_birth(void);
/* Called after a command lost its leader. The killer may have killed the forker too: then the world ends
   before the command's end is reported, so that no further command gets a dying world. */
void children_expect_forker(void);
/* Handles SIGCHLD: reaps, continues processes stopped from inside, replaces killed idle leaders. */
void children_reap(void);
/* Kills PID 1's children other than the forker and the leaders. True: check again soon. */
bool children_end_strays(void);

/* False while processes outside every command may live: strays, and children of killed leaders. */
bool children_settled(void);
/* Kills and reaps every process in the world, for at most a second. No process starts afterwards. */
void children_end_all(void);

/* Returns the command of a process or thread. NULL: the process is gone, or outside every command. */
struct command *children_owner(pid_t task);

/* True when an idle leader is ready. */
bool leader_ready(void);
/* True when the leader of a job's session is ready; otherwise asks the forker for it. `terminal`: the job's. */
bool job_leader_ready(int terminal);
/* Ends a job's leader that got no order. */
void job_leader_drop(void);
/* Receives a listener from the runner of a waiting leader, whose socket is readable. */
void leader_hear(void);
/* Serves an event of the listener of the leader with this pid, 0: of the shared listener. */
void children_listen(pid_t pid, uint32_t events);
/* Gives the order to the idle leader or the job's, and its outputs to the command. -1 with errno when the leader is gone. */
int leader_assign(struct command *command, const struct order *order, const void *payload, size_t length,
                  const int *fds, int fd_count, bool is_job);
/* Asks the forker for a leader, unless an idle leader is ready or requested. */
void leader_request(void);
/* Releases a leader after its final report. */
void leader_released(struct leader *leader, bool leaves_strays, bool group_killed);
/* Releases a leader that died, or is about to, without a final report. */
void leader_lost(struct leader *leader);

#endif
