/* An EXEC payload as the arrays that execve wants. */
#ifndef SUBSTRATE_RUN_PROGRAM_H
#define SUBSTRATE_RUN_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct program {
  bool asked;        /* whoever listens is told of its start */
  char **argv;       /* NULL-terminated */
  char **shell_argv; /* the same behind "/bin/sh", for a script without an interpreter line */
  char **envp;
  const char *cwd;
  const char *search; /* PATH, as the job's own environment has it */
};

/* NULL, or what is wrong with the payload. Pure; PID 1 asks it before it passes a job on. */
const char *program_check(uint8_t *payload, size_t length, size_t *arguments, size_t *variables);

/* Makes the arrays; strings stay where they are in the payload. 0, or -1 with errno. */
int program_unpack(uint8_t *payload, size_t length, struct program *program);

/* Touches what program_unpack will write to, so that its page faults come before the job. */
void program_warm(void);

/* Replaces the process. Returns only on failure, with execvp's errno: EACCES if something was found on
   PATH but nothing could be run. Only system calls: its memory may be shared with another process. */
int program_execute(const struct program *program);

#endif
