/* What PID 1, the forker and the leaders say to each other: small structs over SOCK_SEQPACKET. */
#ifndef SUBSTRATE_LIB_JOBS_H
#define SUBSTRATE_LIB_JOBS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* An EXEC payload up to this size travels in the message, a larger one in a memfd. */
#define JOB_INLINE 65536
#define JOB_FDS 3 /* the most that any message carries */

/* Where a job that says no PATH looks. */
#define PROGRAM_PATH "/usr/local/bin:/usr/bin:/bin"

/* PID 1 → leader. */
enum order_kind { ORDER_RUN = 1, ORDER_SIGNAL };
struct order {
  uint32_t kind;
  uint32_t signal; /* ORDER_SIGNAL */
  uint32_t keep;   /* ORDER_RUN: processes may outlive the command */
  uint32_t length; /* ORDER_RUN: bytes of payload, here or in the memfd */
  uint32_t input;           /* ORDER_RUN: the first descriptor is stdin, the reading end of a pipe */
  uint32_t memory_file;     /* ORDER_RUN: the next descriptor is the command's memory file */
  uint32_t payload_in_file; /* ORDER_RUN: the last descriptor is the payload */
  uint32_t asked; /* ORDER_RUN: its start is asked about */
};

/* Leader → PID 1, REPORT_FAILED followed by the path. Every kind but REPORT_KEPT and REPORT_LISTENER is the leader's last word. */
enum report_kind {
  REPORT_ENDED = 1, /* main process and its whole tree are gone (or could not be ended: leftover) */
  REPORT_KEPT,      /* main process ended, `kept` others live on */
  REPORT_GONE,      /* after REPORT_KEPT: now those are gone too */
  REPORT_FAILED,    /* the command never began */
  REPORT_LISTENER,  /* from its runner, before its job comes: the descriptor is the listener of its filter; without one the
                       kernel gave none */
};
struct ending {
  uint32_t code;
  uint32_t signal; /* 0: `code` holds */
  uint32_t leftover;
  uint32_t group_killed; /* by cgroup.kill */
  uint32_t kept;
  uint32_t seen; /* the most processes at once that were seen when it was signalled or ended, 0: it never was */
  uint64_t cpu_us;
  uint64_t maxrss;
};
struct report {
  uint32_t kind;
  uint32_t error; /* REPORT_FAILED, with step and path */
  struct ending ending; /* all other kinds */
  char step[16];
};
#define REPORT_PATH_MAX PATH_MAX

/* PID 1 → forker: one byte, with the command's cgroup (group.h) where there is one. */

/* Forker → PID 1, with the leader's socket and the read ends of its stdout and stderr. error != 0: no leader could be made. */
struct birth {
  int32_t pid;
  int32_t error;
};

/* One message with descriptors. 0, or -1 with errno. */
int job_send(int socket, const void *head, size_t head_length, const void *body, size_t body_length,
             const int *fds, int fd_count, int flags);
/* Bytes received (0: the other side is gone), -1 with errno. `fds` has room for JOB_FDS. A message with more
   of them, or longer than `length`, is EMSGSIZE, and what came with it is closed. */
ssize_t job_receive(int socket, void *data, size_t length, int *fds, int *fd_count, int flags);

#endif
