#define _GNU_SOURCE
#include "outer/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/credentials.h"
#include "lib/descriptors.h"
#include "lib/failure.h"

#define NUMBER_DIGITS 19

/* The kernel counts queued signals with timers, and the bytes of POSIX queues, for all processes of a user
   together: one command could take the host's timer_create or mq_open away. Programs have a handful of each. */
#define SIGNALS_MAX 4096
#define QUEUE_BYTES_MAX (400 * 1024)

/* Above a desktop's score for its own expendable programs (300), below the certain victim's (1000). */
#define OOM_SCORE 500

static struct limits kept;

static bool take_number(const char *text, size_t length, uint64_t *number) {
  if (*number != 0 || length == 0 || length > NUMBER_DIGITS) return false;
  for (size_t i = 0; i < length; i++) {
    if (text[i] < '0' || text[i] > '9') return false;
    *number = *number * 10 + (uint64_t)(text[i] - '0');
  }
  return *number != 0;
}

/* Takes a single path component, neither hidden nor a dot name. */
static bool take_name(const char *text, size_t length, char *name) {
  if (name[0] != 0 || length == 0 || length > CGROUP_NAME_MAX) return false;
  if (text[0] == '.' || memchr(text, '/', length) != NULL) return false;
  memcpy(name, text, length);
  name[length] = 0;
  return true;
}

bool limits_take(const struct field *field, struct limits *limits) {
  if (!field_is_string(field, 1)) return false;
  const char *text = (const char *)field->data;
  const char *equals = memchr(text, '=', field->length);
  if (equals == NULL) return false;
  const char *value = equals + 1;
  size_t left = (size_t)(equals - text), right = field->length - left - 1;
  const struct {
    const char *name;
    uint64_t *number;
  } numbers[] = {{"memory", &limits->memory},
                 {"pids", &limits->pids},
                 {"pid_max", &limits->pid_max},
                 {"nproc", &limits->nproc},
                 {"nofile", &limits->nofile}};
  if (left == strlen("cgroup") && memcmp(text, "cgroup", left) == 0) return take_name(value, right, limits->cgroup);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    if (strlen(numbers[i].name) != left || memcmp(text, numbers[i].name, left) != 0) continue;
    return take_number(value, right, numbers[i].number);
  }
  return false;
}

void limits_keep(const struct limits *limits) {
  kept = *limits;
}

const struct limits *limits_kept(void) {
  return &kept;
}

/* Reads a number from a small file; -1 with errno. */
static int64_t read_number(int folder, const char *path) {
  char text[32] = "";
  int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t length = read(fd, text, sizeof text - 1);
  close_keeping_errno(fd, 0);
  return length <= 0 ? -1 : strtoll(text, NULL, 10);
}

static int write_number(int folder, const char *path, uint64_t number) {
  char text[32];
  int length = snprintf(text, sizeof text, "%llu", (unsigned long long)number);
  int fd = openat(folder, path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t written = write(fd, text, (size_t)length);
  close_keeping_errno(fd, 0);
  return written == length ? 0 : -1;
}

/* Sets pid_max. The broker asks only on kernels where pid_max belongs to the pid namespace (6.14 and later),
   and checks afterwards that its own has not changed. A refusal does not fail the world: READY reports the
   limit in force. */
uint64_t limits_set_pid_max(int proc, const struct limits *limits) {
  if (limits->pid_max == 0 || write_number(proc, "sys/kernel/pid_max", limits->pid_max) < 0) return 0;
  return read_number(proc, "sys/kernel/pid_max") == (int64_t)limits->pid_max ? limits->pid_max : 0;
}

/* Makes the OOM killer prefer a command to a broker or a neighbour. */
static void offer_to_oom_killer(int proc) {
  /* While the process is not dumpable, the file belongs to root, who is unmapped inside. No command runs here
     yet. */
  if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0) fail_world("forker", "dumpable", errno);
  int64_t score = read_number(proc, "self/oom_score_adj");
  /* Lowering is refused; a higher score from the host stays. */
  if (score < OOM_SCORE && write_number(proc, "self/oom_score_adj", OOM_SCORE) < 0) {
    fail_world("forker", "oom_score_adj", errno);
  }
  credentials_hide();
}

static void lower(int resource, const char *name, uint64_t most) {
  struct rlimit limit;
  if (getrlimit(resource, &limit) < 0) fail_world("rlimit", name, errno);
  if (limit.rlim_max > most) limit.rlim_max = most;
  if (limit.rlim_cur > limit.rlim_max) limit.rlim_cur = limit.rlim_max;
  if (setrlimit(resource, &limit) < 0) fail_world("rlimit", name, errno);
}

void limits_enter_forker(int proc) {
  offer_to_oom_killer(proc);
  /* 1 and not 0: at 0 the kernel still starts a core_pattern program, as root and on the host, and passes the
     command's memory; 1 prevents even that (fs/coredump.c). A core file is never so small. */
  lower(RLIMIT_CORE, "core", 1);
  lower(RLIMIT_SIGPENDING, "sigpending", SIGNALS_MAX);
  lower(RLIMIT_MSGQUEUE, "msgqueue", QUEUE_BYTES_MAX);
}

/* Lowers the limit to at most half of the present limit: the kernel counts a user's descriptors in flight
   through sockets, and refuses more from a process with a limit below that count (net/unix/scm.c). Processes
   that make worlds and hand over connections send descriptors, and keep their full limit beyond a command's
   reach. */
static int lower_descriptors(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) < 0) return -1;
  limit.rlim_max = limit.rlim_max / 2 < kept.nofile ? limit.rlim_max / 2 : kept.nofile;
  if (limit.rlim_cur > limit.rlim_max) limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit);
}

int limits_enter_command(void) {
  if (kept.nofile != 0 && lower_descriptors() < 0) return -1;
  if (kept.nproc == 0) return 0;
  const struct rlimit limit = {kept.nproc, kept.nproc};
  return setrlimit(RLIMIT_NPROC, &limit);
}
