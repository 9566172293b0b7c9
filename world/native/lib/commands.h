/* PID 1's table of the commands that run, by the broker's id, and of what each of them is made. Whoever fills in a part releases it. */
#ifndef SUBSTRATE_LIB_COMMANDS_H
#define SUBSTRATE_LIB_COMMANDS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/jobs.h"

#define COMMANDS_MAX 4096
/* A leader's socket, its listener and three pipes, beside its cgroup's files; and what PID 1 has beside commands, with room to spare. */
#define DESCRIPTORS_EACH 5
#define DESCRIPTORS_OTHER 96

struct group;
struct refused_calls;
struct touched;
struct lineage;
struct telemetry;
struct gate;
struct input;
struct refused_writes;

enum armed { DISARMED, ARMED_FOR_END, ARMED_FOR_DATA };

/* One of the two pipes out of a command. */
struct output {
  int fd; /* open until the command is removed; -1: it could not be read */
  enum armed armed;
  bool hung_up; /* nobody writes to it any more, but bytes may stand in it */
  bool eof;
  uint64_t owed; /* bytes that must leave before EXIT does */
};

/* The parent of a command's first process, as PID 1 has it. */
struct leader {
  pid_t pid;
  int socket; /* -1: said its last word, not reaped yet */
  int listener; /* of its command's filter, -1: none (yet) */
  int outputs[2]; /* read ends of its command's pipes, until a command takes them over */
  struct command *command;
  struct group *group; /* NULL: it has none, or it is being removed */
  bool leaves_strays;
  struct leader *next;
};

/* What the kernel counted; -1: not measured here. */
struct measured {
  int64_t cpu_us, memory_peak, pids_peak, oom_kill, pids_max;
};

struct command {
  uint32_t id;
  struct command *next;
  struct leader *leader; /* NULL when it has said its last word, or died */
  struct output outputs[2];
  struct input *input; /* what it has still to read, NULL: all of it stands in its pipe */
  uint64_t credit;
  bool keep;
  bool discard;
  bool ended;           /* the main process is over; `ending` is what EXIT will say */
  bool exit_sent;
  int64_t orphaned; /* when its leader was killed, 0: it was not. What it left is being ended then */
  int64_t end_deadline; /* when a leader that was told to end the tree loses its patience, 0: never */
  uint32_t seen; /* the most processes that were there when its leader had to be ended */
  struct ending ending;
  struct refused_calls *refused_calls; /* NULL until the first */
  struct touched *touched; /* NULL: nobody is told what it changes */
  struct lineage *lineage; /* NULL: nobody is told what it starts */
  struct telemetry *telemetry; /* NULL: nobody listens to what its programs report */
  struct gate *gate; /* NULL: it starts what it likes */
  uint64_t refused; /* the start that was refused last */
  int64_t refused_at;
  unsigned sockets_told; /* how many of the sockets that it was refused */
  struct refused_writes *refused_writes; /* NULL until the first */
  struct own_program *own; /* what its runner was told to start, NULL: nobody is asked about it */
  struct measured measured;
};

/* How many descriptors PID 1 may have, and how many more each command takes: lowers the number of commands if it
   must. */
void commands_fit(uint64_t descriptors, uint64_t more);

struct command *command_find(uint32_t id);
/* NULL with errno: EAGAIN when there are too many, ENOMEM. */
struct command *command_add(uint32_t id);
/* Takes the command out of the table and closes its outputs. Its parts are released before (command_end). */
void command_remove(struct command *command);

/* Walks all commands: NULL begins, NULL ends. Ask for the next one before removing the current one. */
struct command *command_after(const struct command *command);
#endif
