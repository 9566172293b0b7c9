#define _GNU_SOURCE
#include "run/requests.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>

#include "lib/channel.h"
#include "lib/clock.h"
#include "lib/commands.h"
#include "lib/failure.h"
#include "lib/fields.h"
#include "lib/frames.h"
#include "lib/tree.h"
#include "notify/starts/gates.h"
#include "notify/starts/pending.h"
#include "run/children.h"
#include "run/execute.h"
#include "run/input.h"
#include "run/listing.h"
#include "run/outputs.h"
#include "run/lookups.h"
#include "run/owner.h"
#include "run/pins.h"
#include "run/terminal.h"
#include "seals/replacements.h"
#include "seals/settle.h"

/* A leader gives up after 1 s by itself; PID 1 kills a leader that has not answered by then. */
#define LEADER_DEADLINE_MS 1500

/* Marks a port of TCP in ASKER. */
#define ASKED_BY_TCP 65536

static bool deadlines;

static uint64_t number_of(const struct frame *frame, const char *what) {
  if (frame->length != 8) fail_protocol(what);
  return read_u64(frame->payload);
}

static void add_credit(const struct frame *frame) {
  uint64_t more = number_of(frame, "WINDOW: not eight bytes");
  struct command *command = command_find(frame->id);
  if (command == NULL) return;
  if (__builtin_add_overflow(command->credit, more, &command->credit)) command->credit = UINT64_MAX;
  outputs_resume(command);
}

static void send_signal(const struct frame *frame) {
  uint64_t signal = number_of(frame, "SIGNAL: not eight bytes");
  if (signal < 1 || signal > (uint64_t)SIGRTMAX) fail_protocol("SIGNAL: no such signal");
  struct command *command = command_find(frame->id);
  if (command == NULL || command->leader == NULL) return;
  struct order order = {.kind = ORDER_SIGNAL, .signal = (uint32_t)signal};
  int sent = job_send(command->leader->socket, &order, sizeof order, NULL, 0, NULL, 0, MSG_DONTWAIT);
  kill(command->leader->pid, SIGCONT);
  if (signal != SIGKILL) return;
  if (command->end_deadline == 0) command->end_deadline = now_ms() + (sent < 0 ? 0 : LEADER_DEADLINE_MS);
  deadlines = true;
}

/* A signal key of a person reaches what stands in the foreground, as a terminal's driver would have it. */
static void interrupt(const struct frame *frame) {
  struct command *command = command_find(frame->id);
  uint64_t signal = number_of(frame, "INTERRUPT: not eight bytes");
  bool done = command != NULL && command->terminal && !command->outputs[0].eof && signal >= 1 && signal <= (uint64_t)SIGRTMAX &&
              terminal_signal(command->outputs[0].fd, (int)signal);
  if (!done) send_signal(frame);
}

static void resize(const struct frame *frame) {
  struct field_reader reader = {frame->payload, frame->payload + frame->length};
  struct field field;
  uint64_t columns = 0, rows = 0;
  int got;
  while ((got = field_next(&reader, &field)) > 0) {
    uint64_t *value = field.tag == TAG_COLUMNS ? &columns : field.tag == TAG_ROWS ? &rows : NULL;
    if (value == NULL || !field_u64(&field, value)) fail_protocol("RESIZE: bad field");
  }
  if (got < 0 || columns == 0 || rows == 0) fail_protocol("RESIZE: malformed");
  const struct command *command = command_find(frame->id);
  if (command != NULL && command->terminal && !command->outputs[0].eof) terminal_resize(command->outputs[0].fd, columns, rows);
}

static void discard(const struct frame *frame) {
  if (frame->length != 0) fail_protocol("DISCARD: has a payload");
  struct command *command = command_find(frame->id);
  if (command == NULL) return;
  command->discard = true;
  outputs_resume(command);
}

static void send_asker(int proc, uint32_t question, uint64_t socket) {
  owner_send(proc, question, lookups_inode((socket & ASKED_BY_TCP) != 0, (uint16_t)socket));
}

bool requests_serve(int proc) {
  struct frame frame;
  while (channel_next(&frame)) {
    switch (frame.type) {
      case FRAME_EXEC:
        if (!execute_begin(&frame)) return false;
        break;
      case FRAME_WINDOW:
        add_credit(&frame);
        break;
      case FRAME_SIGNAL:
        send_signal(&frame);
        break;
      case FRAME_INTERRUPT:
        interrupt(&frame);
        break;
      case FRAME_RESIZE:
        resize(&frame);
        break;
      case FRAME_INPUT:
        input_add(&frame);
        break;
      case FRAME_INPUT_END:
        input_end(&frame);
        break;
      case FRAME_DISCARD:
        discard(&frame);
        break;
      case FRAME_LIST:
        if (frame.id != 0 || frame.length != 0) fail_protocol("LIST: has an id or a payload");
        listing_send(proc);
        break;
      case FRAME_GATE:
        gate_define(&frame);
        break;
      case FRAME_ANSWER:
        pending_answer(&frame);
        break;
      case FRAME_SEAL:
        replacement_seal(&frame);
        break;
      case FRAME_PIN:
        pins_add(&frame);
        break;
      case FRAME_SETTLE:
        new_repositories_settle(&frame);
        break;
      case FRAME_REPLACED:
        replacement_answer(&frame);
        break;
      case FRAME_OWNER:
        owner_send(proc, frame.id, number_of(&frame, "OWNER: not eight bytes"));
        break;
      case FRAME_ASKER:
        send_asker(proc, frame.id, number_of(&frame, "ASKER: not eight bytes"));
        break;
      default:
        fail_protocol("unknown frame type");
    }
    channel_release();
  }
  return true;
}

void requests_fail_waiting(int error) {
  struct frame frame;
  if (!channel_next(&frame) || frame.type != FRAME_EXEC) return;
  execute_abandon(&frame, "fork", error);
  channel_release();
}

int requests_check_deadlines(int proc) {
  if (!deadlines) return -1;
  int64_t now = now_ms();
  int64_t next = INT64_MAX;
  for (struct command *command = command_after(NULL); command != NULL; command = command_after(command)) {
    if (command->end_deadline == 0 || command->leader == NULL) continue;
    if (command->end_deadline <= now) {
      /* Reaping the leader does the rest: EXIT as killed, and its processes become strays. Count the
         processes here, because a dead leader cannot. */
      int count;
      tree_below(proc, command->leader->pid, 1, &count);
      if ((uint32_t)count > command->seen) command->seen = (uint32_t)count;
      kill(command->leader->pid, SIGKILL);
      command->end_deadline = now + LEADER_DEADLINE_MS;
    }
    if (command->end_deadline < next) next = command->end_deadline;
  }
  deadlines = next != INT64_MAX;
  return deadlines ? (int)(next - now) + 1 : -1;
}
