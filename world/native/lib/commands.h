/* PID 1's table of running commands, by the broker's id, with the state of each. The module that fills in a
   part releases the part. */
#ifndef SUBSTRATE_LIB_COMMANDS_H
#define SUBSTRATE_LIB_COMMANDS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/jobs.h"

#define COMMANDS_MAX 4096
/* EACH: a leader's socket, its listener and three pipes, without the cgroup's files. OTHER: PID 1's own
   descriptors, with room to spare. */
#define DESCRIPTORS_EACH 5
#define DESCRIPTORS_OTHER 96

/* Ports told of one command: enough for a reader, whatever a scan finds. */
#define CLOSED_PORTS_MAX 8
struct closed_ports {
  unsigned count;
  uint16_t list[CLOSED_PORTS_MAX];
};

/* Refused addresses told of one command. */
#define REFUSED_ADDRESSES_MAX 16
struct refused_addresses {
  unsigned count;
  struct refused_address {
    uint8_t address[16]; /* IPv4 mapped to IPv6 */
    uint16_t port;
  } list[REFUSED_ADDRESSES_MAX];
};

struct group;
struct refused_calls;
struct touched;
struct lineage;
struct telemetry;
struct gate;
struct input;
struct refused_writes;
struct state_file;

enum armed { DISARMED, ARMED_FOR_END, ARMED_FOR_DATA, ARMED_FOR_OPENING };

/* stdout or stderr of a command. */
struct output {
  int fd; /* open until the command is removed; -1: unreadable */
  enum armed armed;
  bool hung_up; /* all writers closed, but bytes may be left */
  bool shut; /* a terminal that no process has open, but may open again */
  bool eof;
  uint64_t owed; /* bytes to send before EXIT */
};

/* The parent of a command's first process, in PID 1's view. */
struct leader {
  pid_t pid;
  int socket; /* -1: final report received, not reaped yet */
  int listener; /* listener of the command's seccomp filter, -1: not received */
  int outputs[2]; /* read ends of its command's pipes, until a command takes them over */
  struct command *command;
  struct group *group; /* NULL: no cgroup, or removal has begun */
  bool leaves_strays;
  struct leader *next;
};

/* Values counted by the kernel; -1: not measured. */
struct measured {
  int64_t cpu_us, memory_peak, pids_peak, oom_kill, pids_max;
};

struct command {
  uint32_t id;
  struct command *next;
  struct leader *leader; /* NULL after the leader's final report or death */
  struct output outputs[2];
  struct input *input; /* unwritten standard input, NULL: all written to the pipe */
  uint64_t credit;
  bool keep;
  bool terminal; /* outputs[0] is the master of the command's terminal, outputs[1] is closed */
  bool discard;
  bool ended;           /* the main process has ended; `ending` goes into EXIT */
  bool exit_sent;
  int64_t orphaned; /* when its leader was killed and its processes become strays to kill, 0: not killed */
  int64_t end_deadline; /* when a leader told to end the tree is killed, 0: never */
  uint32_t seen; /* most processes seen when its leader had to be killed */
  struct ending ending;
  struct refused_calls *refused_calls; /* NULL until the first */
  struct touched *touched; /* NULL: file changes are not reported */
  struct lineage *lineage; /* NULL: program starts are not reported */
  struct telemetry *telemetry; /* NULL: no telemetry */
  struct gate *gate; /* NULL: the broker is not asked about program starts */
  uint64_t refused; /* hash of the last refused start */
  int64_t refused_at;
  unsigned sockets_told; /* number of refused sockets reported */
  struct closed_ports closed_ports; /* of the world's localhost, that refused it */
  struct refused_addresses refused_addresses; /* by the world's network */
  struct refused_writes *refused_writes; /* NULL until the first */
  struct own_program *own; /* program that the runner was told to start, NULL: the broker is not asked about it */
  struct measured measured;
  struct state_file *state; /* NULL: its shell reports no state */
};

/* Lowers the number of commands to fit PID 1's descriptor limit; `more`: descriptors per command beyond
   DESCRIPTORS_EACH. */
void commands_fit(uint64_t descriptors, uint64_t more);

struct command *command_find(uint32_t id);
/* Adds a command. NULL with errno: EAGAIN for too many commands, ENOMEM. */
struct command *command_add(uint32_t id);
/* Removes the command from the table and closes its outputs. Release its parts first (command_end). */
void command_remove(struct command *command);

/* Iterates over all commands: NULL begins, NULL ends. Fetch the next command before removing the current. */
struct command *command_after(const struct command *command);
#endif
