/* Messages between PID 1, the forker and the leaders: small structs over SOCK_SEQPACKET. */
#ifndef SUBSTRATE_LIB_JOBS_H
#define SUBSTRATE_LIB_JOBS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* An EXEC payload up to this size travels in the message, a larger payload in a memfd. */
#define JOB_INLINE 65536
#define JOB_FDS 4 /* most descriptors in a message */

/* Search path of a job without PATH. */
#define PROGRAM_PATH "/usr/local/bin:/usr/bin:/bin"

/* PID 1 → leader. */
enum order_kind { ORDER_RUN = 1, ORDER_SIGNAL };
struct order {
  uint32_t kind;
  uint32_t signal; /* ORDER_SIGNAL */
  uint32_t keep;   /* ORDER_RUN: processes may outlive the command */
  uint32_t length; /* ORDER_RUN: bytes of payload, here or in the memfd */
  uint32_t input;           /* ORDER_RUN: the first descriptor is stdin, the read end of a pipe, or a terminal */
  uint32_t terminal;        /* ORDER_RUN: the first descriptor is the terminal of the command's session */
  uint32_t memory_file;     /* ORDER_RUN: the next descriptor is the command's memory file */
  uint32_t script;          /* ORDER_RUN: the next descriptor is the script that the command's shell reads first */
  uint32_t payload_in_file; /* ORDER_RUN: the last descriptor is the payload */
  uint32_t one_output;      /* ORDER_RUN: standard error is standard output's pipe */
  uint32_t umask;           /* ORDER_RUN: plus 01000; 0: the forker's */
  uint32_t asked; /* ORDER_RUN: the broker is asked about the start */
};

/* Leader → PID 1; REPORT_FAILED is followed by the path. The kinds before REPORT_STOPPED are final, but for REPORT_KEPT. */
enum report_kind {
  REPORT_ENDED = 1, /* main process and its whole tree are gone (or survived: leftover) */
  REPORT_KEPT,      /* main process ended, `kept` others live on */
  REPORT_GONE,      /* after REPORT_KEPT: the others are gone too */
  REPORT_FAILED,    /* the command never began */
  REPORT_STOPPED,   /* the main process of a job was stopped */
  REPORT_LISTENER,  /* from the command's runner, before the job; with the listener of the filter, if granted */
};
struct ending {
  uint32_t code;
  uint32_t signal; /* 0: `code` is valid */
  uint32_t leftover;
  uint32_t group_killed; /* by cgroup.kill */
  uint32_t kept;
  uint32_t killed_after; /* the main process had exited some time ago */
  uint32_t over_before; /* the main process had ended before the first order to signal */
  uint32_t seen; /* most processes seen at once when signalled or ended, 0: never signalled */
  uint64_t cpu_us;
  uint64_t maxrss;
};
struct report {
  uint32_t kind;
  uint32_t error; /* REPORT_FAILED, with step and path; REPORT_STOPPED: the signal */
  struct ending ending; /* all other kinds */
  char step[16];
};
#define REPORT_PATH_MAX PATH_MAX

/* PID 1 → forker: a byte, with the command's cgroup (group.h) if any. A job's leader needs the job's terminal too, as the last
   descriptor: it is the leader of the terminal's session, so that its child, the command, is a job that can be stopped. The kernel
   stops no process group that nobody in its session could continue (is_current_pgrp_orphaned, drivers/tty/tty_jobctrl.c). */
enum birth_request { REQUEST_LEADER = 'l', REQUEST_JOB_LEADER = 'j' };

/* Forker → PID 1, with the leader's socket and the read ends of its stdout and stderr. error != 0: no leader
   was made. */
struct birth {
  int32_t pid;
  int32_t error;
};

/* Sends a message with descriptors. 0, or -1 with errno. */
int job_send(int socket, const void *head, size_t head_length, const void *body, size_t body_length,
             const int *fds, int fd_count, int flags);
/* Returns the bytes received (0: the other side is gone), -1 with errno. `fds` has room for JOB_FDS. A
   message with more descriptors, or longer than `length`, is EMSGSIZE, and its descriptors are closed. */
ssize_t job_receive(int socket, void *data, size_t length, int *fds, int *fd_count, int flags);

#endif
