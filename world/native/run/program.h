/* An EXEC payload as arrays for execve. */
#ifndef SUBSTRATE_RUN_PROGRAM_H
#define SUBSTRATE_RUN_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct program {
  bool asked;        /* the listener gets the start of this program */
  char **argv;       /* NULL-terminated */
  char **shell_argv; /* the same after "/bin/sh", for a script without an interpreter line */
  char **envp;
  const char *cwd;
  const char *search; /* PATH from the job's own environment */
};

/* Checks the payload before PID 1 passes the job on. Returns NULL or the error. Pure. */
const char *program_check(uint8_t *payload, size_t length, size_t *arguments, size_t *variables);

/* Makes the arrays; strings stay in place in the payload. 0, or -1 with errno. */
int program_unpack(uint8_t *payload, size_t length, struct program *program);

/* Touches the memory that program_unpack writes, so that its page faults come before the job. */
void program_warm(void);

/* Replaces the process. Returns only on failure, with execvp's errno: EACCES if PATH had files but no
   runnable file. Makes only system calls: the memory may be shared with another process. */
int program_execute(const struct program *program);

#endif
