#define _GNU_SOURCE
#include "run/execute.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "deny/denied_names.h"
#include "lib/commands.h"
#include "lib/descriptors.h"
#include "lib/failure.h"
#include "lib/fields.h"
#include "lib/frames.h"
#include "mount/dentries.h"
#include "mount/spines.h"
#include "notify/starts/gates.h"
#include "notify/starts/lineage.h"
#include "notify/starts/own_program.h"
#include "run/children.h"
#include "run/endings.h"
#include "run/input.h"
#include "run/outputs.h"
#include "run/program.h"
#include "run/state.h"
#include "run/terminal.h"
#include "telemetry/telemetry.h"

/* A parsed EXEC, kept while waiting for a leader: parsing rewrites the frame. */
static struct {
  bool valid;
  size_t length; /* length of the leader's part, without the fields for PID 1 */
  int input;       /* -1: no input */
  struct input *rest; /* input that does not fit into the pipe, or that follows */
  int master;      /* of the command's terminal, whose slave is the input; -1: no terminal */
  int memory_file; /* -1: no memory file */
  int script;      /* -1: no state */
  uint64_t window;
  uint64_t open;          /* input comes in INPUT frames */
  uint64_t columns, rows; /* 0: no terminal */
  uint64_t job_control;
  uint64_t one_output;
  uint64_t umask; /* plus 01000; 0: none is given */
  uint64_t keep;
  uint64_t gate; /* 0: no gate */
  uint64_t lineage;
  size_t telemetry_length; /* 0: no telemetry */
  uint8_t telemetry[TELEMETRY_NAME_MAX];
  char state_path[FRAME_MAX_STATE_PATH + 1]; /* empty: no state */
} job = {.input = -1, .master = -1, .memory_file = -1, .script = -1};

/* Fields of a frame that the leader gets as descriptors. */
struct files {
  struct field input, memory, script;
};

static int file_with(const char *name, unsigned int flags, const uint8_t *data, size_t length) {
  int fd = memfd_create(name, MFD_CLOEXEC | flags);
  if (fd < 0) return -1;
  size_t written = 0;
  while (written < length) {
    ssize_t count = write(fd, data + written, length - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    written += (size_t)count;
  }
  if (written == length && lseek(fd, 0, SEEK_SET) == 0) return fd;
  return close_keeping_errno(fd, -1);
}

/* Makes a file sealed against every change, even through its descriptor. */
static int sealed_file_with(const char *name, const struct field *content) {
  int fd = file_with(name, MFD_ALLOW_SEALING, content->data, content->length);
  if (fd < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0) return fd;
  return close_keeping_errno(fd, -1);
}

/* Checks the payload. Returns the error, or NULL. */
static const char *parse(const struct frame *frame, struct files *files) {
  struct field_reader reader = {frame->payload, frame->payload + frame->length};
  struct field field;
  bool has_keep = false, has_window = false;
  int got;
  while ((got = field_next(&reader, &field)) > 0) {
    if (field.tag == TAG_STDIN) {
      if (files->input.data != NULL) return "EXEC: two STDIN";
      files->input = field;
    } else if (field.tag == TAG_MEMORY_FILE) {
      if (files->memory.data != NULL || field.length > FRAME_MAX_MEMORY_FILE) return "EXEC: bad MEMORY_FILE";
      files->memory = field;
    } else if (field.tag == TAG_KEEP) {
      if (has_keep || !field_u64(&field, &job.keep) || job.keep > 1) return "EXEC: bad KEEP";
      has_keep = true;
    } else if (field.tag == TAG_WINDOW) {
      if (has_window || !field_u64(&field, &job.window)) return "EXEC: bad WINDOW";
      has_window = true;
    } else if (field.tag == TAG_OPEN) {
      if (job.open != 0 || !field_u64(&field, &job.open) || job.open != 1) return "EXEC: bad OPEN";
    } else if (field.tag == TAG_COLUMNS) {
      if (job.columns != 0 || !field_u64(&field, &job.columns) || job.columns == 0) return "EXEC: bad COLUMNS";
    } else if (field.tag == TAG_ROWS) {
      if (job.rows != 0 || !field_u64(&field, &job.rows) || job.rows == 0) return "EXEC: bad ROWS";
    } else if (field.tag == TAG_JOB_CONTROL) {
      if (job.job_control != 0 || !field_u64(&field, &job.job_control) || job.job_control != 1) return "EXEC: bad JOB_CONTROL";
    } else if (field.tag == TAG_ONE_OUTPUT) {
      if (job.one_output != 0 || !field_u64(&field, &job.one_output) || job.one_output != 1) return "EXEC: bad ONE_OUTPUT";
    } else if (field.tag == TAG_UMASK) {
      if (job.umask != 0 || !field_u64(&field, &job.umask) || job.umask >> 9 != 1) return "EXEC: bad UMASK";
    } else if (field.tag == TAG_GATE) {
      if (job.gate != 0 || !field_u64(&field, &job.gate) || job.gate == 0) return "EXEC: bad GATE";
    } else if (field.tag == TAG_LINEAGE) {
      if (job.lineage != 0 || !field_u64(&field, &job.lineage) || job.lineage != 1) return "EXEC: bad LINEAGE";
    } else if (field.tag == TAG_TELEMETRY) {
      if (job.telemetry_length != 0 || !field_is_string(&field, 1) || field.length > TELEMETRY_NAME_MAX) return "EXEC: bad TELEMETRY";
      job.telemetry_length = field.length;
      memcpy(job.telemetry, field.data, field.length);
    } else if (field.tag == TAG_STATE_PATH) {
      if (job.state_path[0] != 0 || !field_is_string(&field, 1) || field.length > FRAME_MAX_STATE_PATH) return "EXEC: bad STATE_PATH";
      memcpy(job.state_path, field.data, field.length);
      job.state_path[field.length] = 0;
    } else if (field.tag == TAG_STATE_SCRIPT) {
      if (files->script.data != NULL || field.length > FRAME_MAX_STATE_SCRIPT) return "EXEC: bad STATE_SCRIPT";
      files->script = field;
    }
  }
  if (got < 0) return "EXEC: malformed field";
  if ((job.columns == 0) != (job.rows == 0)) return "EXEC: COLUMNS without ROWS";
  if (job.job_control != 0 && job.columns == 0) return "EXEC: JOB_CONTROL without COLUMNS";
  if (job.one_output != 0 && job.columns != 0) return "EXEC: ONE_OUTPUT with COLUMNS";
  return files->input.data != NULL && (job.open != 0 || job.columns != 0) ? "EXEC: STDIN and OPEN" : NULL;
}

static bool is_for_supervisor(uint16_t tag) {
  return tag == TAG_STDIN || tag == TAG_MEMORY_FILE || tag == TAG_KEEP || tag == TAG_WINDOW || tag == TAG_GATE ||
         tag == TAG_OPEN || tag == TAG_COLUMNS || tag == TAG_ROWS || tag == TAG_JOB_CONTROL || tag == TAG_ONE_OUTPUT ||
         tag == TAG_UMASK || tag == TAG_LINEAGE || tag == TAG_TELEMETRY || tag == TAG_STATE_PATH || tag == TAG_STATE_SCRIPT;
}

static void compact(const struct frame *frame) {
  struct field_reader reader = {frame->payload, frame->payload + frame->length};
  struct field field;
  while (field_next(&reader, &field) > 0) {
    if (is_for_supervisor(field.tag)) continue;
    size_t size = FIELD_HEADER_SIZE + (size_t)field.length;
    memmove(frame->payload + job.length, field.data - FIELD_HEADER_SIZE, size);
    job.length += size;
  }
}

static bool open_terminal(void) {
  int ends[2];
  if (terminal_open(job.columns, job.rows, ends) < 0) return false;
  job.master = ends[0];
  job.input = ends[1];
  job.rest = input_to_terminal(job.master);
  return job.rest != NULL;
}

/* Returns NULL, or the failed step with errno. */
static const char *keep_files(const struct files *files) {
  const struct field *input = &files->input;
  if (job.columns != 0 && !open_terminal()) return "terminal";
  if (job.columns == 0 && job.open != 0 && (job.input = input_open_stream(&job.rest)) < 0) return "stdin";
  if (input->data != NULL && (job.input = input_open(input->data, input->length, &job.rest)) < 0) {
    return "stdin";
  }
  if (files->memory.data != NULL && (job.memory_file = sealed_file_with("substrate-scope", &files->memory)) < 0) return "memory file";
  /* Another command could write a file that has a name before the shell reads it. */
  if (files->script.data != NULL && (job.script = sealed_file_with("substrate-state", &files->script)) < 0) return "state";
  return NULL;
}

/* Returns NULL, or the failed step with errno. A malformed payload ends the world. */
static const char *prepare(const struct frame *frame) {
  struct files files = {0};
  size_t arguments, variables;
  if (frame->id == 0 || command_find(frame->id) != NULL) fail_protocol("EXEC: the id is taken");
  job.length = 0;
  job.keep = job.window = job.gate = job.lineage = job.open = job.columns = job.rows = job.job_control = job.one_output = job.umask = 0;
  job.telemetry_length = 0;
  job.state_path[0] = 0;
  const char *wrong = parse(frame, &files);
  if (wrong != NULL) fail_protocol(wrong);
  if (job.gate != 0 && job.gate != gate_last()) fail_protocol("EXEC: no such GATE");
  const char *failed = keep_files(&files);
  if (failed != NULL) return failed;
  compact(frame);
  wrong = program_check(frame->payload, job.length, &arguments, &variables);
  if (wrong != NULL) fail_protocol(wrong);
  job.valid = true;
  return NULL;
}

static void done(void) {
  if (job.input >= 0) close(job.input);
  if (job.master >= 0) close(job.master);
  if (job.memory_file >= 0) close(job.memory_file);
  if (job.script >= 0) close(job.script);
  input_drop(job.rest);
  job.rest = NULL;
  job_leader_drop();
  job.input = job.master = job.memory_file = job.script = -1;
  job.valid = false;
}

void execute_abandon(const struct frame *frame, const char *step, int error) {
  ending_failed(frame->id, step, "", error);
  done();
}

/* Hands the job over. 0, or -1 with errno. */
static int hand_over(const struct frame *frame, struct command *command) {
  int fds[JOB_FDS];
  int count = 0;
  struct order order = {.kind = ORDER_RUN,
                        .keep = (uint32_t)job.keep,
                        .length = (uint32_t)job.length,
                        .input = job.input >= 0,
                        .terminal = job.master >= 0,
                        .memory_file = job.memory_file >= 0,
                        .script = job.script >= 0,
                        .payload_in_file = job.length > JOB_INLINE,
                        .one_output = job.one_output != 0,
                        .umask = (uint32_t)job.umask,
                        .asked = command->own != NULL};
  if (job.input >= 0) fds[count++] = job.input;
  if (job.memory_file >= 0) fds[count++] = job.memory_file;
  if (job.script >= 0) fds[count++] = job.script;
  if (!order.payload_in_file) return leader_assign(command, &order, frame->payload, job.length, fds, count, job.job_control != 0);
  int file = file_with("job", 0, frame->payload, job.length);
  if (file < 0) return -1;
  fds[count++] = file;
  int result = leader_assign(command, &order, NULL, 0, fds, count, job.job_control != 0);
  return close_keeping_errno(file, result);
}

/* False: a leader is on its way. */
static bool have_leader(void) {
  if (job.job_control != 0) return job_leader_ready(job.input);
  if (!leader_ready()) leader_request();
  return leader_ready();
}

static bool leader_is_gone(int error) {
  return error == EPIPE || error == ECONNRESET || error == ECONNREFUSED;
}

bool execute_begin(const struct frame *frame) {
  const char *failed = job.valid ? NULL : prepare(frame);
  if (failed != NULL) {
    execute_abandon(frame, failed, errno);
    return true;
  }
  if (!have_leader()) return false;
  /* Handle the host's changes to denied names before this command can see them. */
  names_settle();
  dentries_forget();
  spines_refresh();
  struct command *command = command_add(frame->id);
  if (command == NULL) {
    execute_abandon(frame, "fork", errno);
    return true;
  }
  command->keep = job.keep != 0;
  command->credit = job.window;
  if (job.gate != 0) command->gate = gate_take();
  if (job.gate != 0 && own_program_counts(frame->payload, job.length)) {
    command->own = own_program_keep(frame->payload, job.length);
    if (command->own == NULL) fail_world("own program", "", ENOMEM);
  }
  if (job.lineage != 0) lineage_begin(command);
  if (job.telemetry_length > 0) telemetry_begin(command, job.telemetry, job.telemetry_length);
  if (job.state_path[0] != 0) state_begin(command, job.state_path);
  if (hand_over(frame, command) < 0) {
    int error = errno;
    command_end(command);
    if (leader_is_gone(error)) {
      /* The leader was killed from inside while it waited: the next one gets the job. */
      have_leader();
      return false;
    }
    execute_abandon(frame, "fork", error);
    return true;
  }
  if (job.master >= 0) outputs_be_terminal(command, job.master);
  job.master = -1;
  input_watch(command, job.rest);
  job.rest = NULL;
  done();
  outputs_watch(command);
  leader_request();
  return true;
}
