#define _GNU_SOURCE
#include "run/endings.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "deny/denied_names.h"
#include "lib/channel.h"
#include "lib/clock.h"
#include "lib/fields.h"
#include "lib/frames.h"
#include "mount/kept_writes.h"
#include "notify/connects/closed_ports.h"
#include "notify/listener.h"
#include "notify/refused_calls.h"
#include "notify/starts/gates.h"
#include "notify/starts/lineage.h"
#include "notify/starts/own_program.h"
#include "notify/writes/lookups.h"
#include "notify/writes/refused_writes.h"
#include "notify/writes/touched.h"
#include "run/children.h"
#include "run/group.h"
#include "run/input.h"
#include "run/outputs.h"
#include "run/state.h"
#include "telemetry/telemetry.h"

/* The longest name, "=" and a number of 64 bits. */
#define MEASURED_MAX 40

/* Time for a killed leader's processes to die, equal to a leader's own (leader.c). */
#define ORPHANS_END_WITHIN_MS 1000

void ending_failed(uint32_t id, const char *step, const char *path, int error) {
  static uint8_t payload[PATH_MAX + 128];
  struct field_writer writer = {.data = payload, .capacity = sizeof payload};
  field_put(&writer, TAG_STEP, step, strnlen(step, 64));
  field_put(&writer, TAG_PATH, path, strnlen(path, PATH_MAX));
  field_put_u64(&writer, TAG_ERRNO, (uint64_t)error);
  channel_send(FRAME_EXEC_FAILED, id, payload, writer.length);
}

void command_end(struct command *command) {
  input_drop(command->input);
  state_drop(command);
  free(command->refused_calls);
  touched_end(command);
  refused_writes_end(command);
  lineage_end(command);
  telemetry_end(command);
  gate_release(command->gate);
  own_program_release(command->own);
  command_remove(command);
}

static void put_measured(struct field_writer *writer, const char *name, int64_t number) {
  char text[MEASURED_MAX];
  if (number < 0) return;
  int length = snprintf(text, sizeof text, "%s=%lld", name, (long long)number);
  field_put(writer, TAG_MEASURED, text, (size_t)length);
}

static void send_exit(const struct command *command, bool closed) {
  /* Denied names left by the command are reported before its end. */
  names_settle();
  uint8_t payload[(11 + TOUCHED_FIELDS) * (FIELD_HEADER_SIZE + 8) + 4 * (FIELD_HEADER_SIZE + MEASURED_MAX) +
                  TELEMETRY_FIELDS_SIZE + CLOSED_PORTS_FIELDS_SIZE];
  struct field_writer writer = {.data = payload, .capacity = sizeof payload};
  const struct ending *ending = &command->ending;
  if (ending->signal != 0) field_put_u64(&writer, TAG_SIGNO, ending->signal);
  else field_put_u64(&writer, TAG_CODE, ending->code);
  const struct measured *measured = &command->measured;
  field_put_u64(&writer, TAG_CPU_US, measured->cpu_us >= 0 ? (uint64_t)measured->cpu_us : ending->cpu_us);
  field_put_u64(&writer, TAG_MAXRSS, ending->maxrss);
  field_put_u64(&writer, TAG_CLOSED, closed ? 1 : 0);
  field_put_u64(&writer, TAG_LEFTOVER, ending->leftover);
  if (command->keep) field_put_u64(&writer, TAG_KEPT, ending->kept);
  if (ending->seen > 0) field_put_u64(&writer, TAG_SEEN, ending->seen);
  if (ending->killed_after > 0) field_put_u64(&writer, TAG_KILLED_AFTER, ending->killed_after);
  if (ending->over_before != 0) field_put_u64(&writer, TAG_OVER_BEFORE, 1);
  touched_put(command, &writer);
  if (kept_writes_any()) field_put_u64(&writer, TAG_STRAYED, 1);
  lineage_put(command, &writer);
  telemetry_put(command, &writer);
  closed_ports_put(&command->closed_ports, &writer);
  put_measured(&writer, "memory_peak", measured->memory_peak);
  put_measured(&writer, "pids_peak", measured->pids_peak);
  put_measured(&writer, "oom_kill", measured->oom_kill);
  put_measured(&writer, "pids_max", measured->pids_max);
  channel_send(FRAME_EXIT, command->id, payload, writer.length);
}

/* True while processes may live that only PID 1 can kill now. */
static bool has_orphans(const struct command *command) {
  return command->orphaned != 0 && !children_settled() && now_ms() - command->orphaned < ORPHANS_END_WITHIN_MS;
}

void ending_advance(struct command *command) {
  if (!command->ended || has_orphans(command)) return;
  const struct output *outputs = command->outputs;
  bool closed = outputs[0].eof && outputs[1].eof && command->leader == NULL;
  if (!command->exit_sent) {
    if (outputs[0].owed > 0 || outputs[1].owed > 0) return;
    refused_calls_flush(command);
    touched_settle(command, 0);
    touched_flush(command);
    lineage_settle(command);
    telemetry_settle(command);
    state_send(command);
    send_exit(command, closed);
    command->exit_sent = true;
  } else if (closed) {
    refused_calls_flush(command);
    /* The last act of a kept process may have made a denied name. */
    names_look();
    channel_send(FRAME_CLOSED, command->id, NULL, 0);
  }
  if (closed) command_end(command);
}

static void main_ended(struct command *command, const struct ending *ending) {
  command->ending = *ending;
  command->ended = true;
  outputs_settle(command);
}

void ending_orphaned(struct command *command) {
  command->leader = NULL;
  children_expect_forker();
  command->orphaned = now_ms();
  if (!command->ended) {
    struct ending killed = {.signal = SIGKILL, .seen = command->seen};
    main_ended(command, &killed);
  }
  ending_advance(command);
}

void endings_release(void) {
  struct command *next;
  for (struct command *command = command_after(NULL); command != NULL; command = next) {
    next = command_after(command);
    if (command->orphaned != 0) ending_advance(command);
  }
}

/* Handles a report; true while more may follow. */
static bool take(struct command *command, const struct report *report, const char *path) {
  if (!command->ended) group_measure(command->leader->group, &command->measured);
  if (report->kind == REPORT_KEPT && !command->ended) {
    main_ended(command, &report->ending);
    ending_advance(command);
    return true;
  }
  struct leader *leader = command->leader;
  command->leader = NULL;
  if (report->kind == REPORT_FAILED && !command->ended) {
    ending_failed(command->id, report->step, path, (int)report->error);
    command_end(command);
  } else {
    if (!command->ended) main_ended(command, &report->ending);
    ending_advance(command);
  }
  /* After the answer: closing takes longer than sending. */
  leader_released(leader, report->ending.leftover != 0, report->ending.group_killed != 0);
  return false;
}

/* A person's shell writes to the terminal next, so what the command wrote goes first. */
static void send_stopped(struct command *command, uint32_t signal) {
  uint8_t number[8];
  outputs_show(command);
  write_u64(number, signal);
  channel_send(FRAME_STOPPED, command->id, number, sizeof number);
}

void ending_receive(struct command *command) {
  while (command->leader != NULL) {
    struct {
      struct report report;
      char path[REPORT_PATH_MAX + 1];
    } message;
    int fds[JOB_FDS];
    int fd_count = 0;
    ssize_t length =
        job_receive(command->leader->socket, &message, sizeof message - 1, fds, &fd_count, MSG_DONTWAIT);
    if (length < 0 && errno == EAGAIN) return;
    if (length < (ssize_t)sizeof message.report) {
      /* The socket closed without a final report. */
      leader_lost(command->leader);
      return;
    }
    message.report.step[sizeof message.report.step - 1] = 0;
    ((char *)&message)[length] = 0;
    /* A listener comes before the job is taken: the idle leader got the job before its listener was read. */
    if (message.report.kind == REPORT_LISTENER) {
      if (!listener_take_report(command->leader, fds, fd_count)) return leader_lost(command->leader);
      if (fd_count == 1 && lookups_counted()) touched_begin(command);
      continue;
    }
    if (message.report.kind == REPORT_STOPPED) {
      send_stopped(command, message.report.error);
      continue;
    }
    if (!take(command, &message.report, message.path)) return;
  }
}
