#define _GNU_SOURCE
#include "telemetry/telemetry.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/channel.h"
#include "lib/clock.h"
#include "lib/commands.h"
#include "lib/frames.h"
#include "lib/siphash.h"
#include "lib/watch.h"

/* Header of a message (shim/preload/report.h): u8 kind, u8 flags, u16 number of earlier lost messages; then
   the text. */
#define MESSAGE_HEADER 4
#define MESSAGE_MAX (MESSAGE_HEADER + FRAME_MAX_TELEMETRY_TEXT)
enum { CUT = 1 };

/* Messages read per turn, to let other commands take turns; and turns at a command's end, enough for a full
   socket, so that no sender can delay EXIT. */
#define MESSAGES_A_TURN 32
#define LAST_TURNS 64

/* Slots for hashes of reported messages: at least half stay free. */
#define PLACES 4096

/* Size of the buffer for unsent records (the longest record fits), and their longest wait. */
#define BUFFER (16 * 1024)
#define OLD_MS 200

/* By kind, from 1. */
static const char *const KINDS[] = {"exec", "write", "connect", "unlink", "rename"};
#define KIND_COUNT (sizeof KINDS / sizeof *KINDS)

struct telemetry {
  int fd; /* -1: closed */
  uint32_t told[KIND_COUNT];
  uint64_t counts[KIND_COUNT];
  uint64_t untold, missed;
  int64_t since; /* when the buffer got its first byte */
  size_t length;
  uint64_t known[PLACES]; /* hashes of reported messages, 0: free */
  uint8_t buffer[BUFFER];
};

_Static_assert(KIND_COUNT * FRAME_MAX_TELEMETRY <= PLACES / 2, "there is always a free place");

static uint32_t listening; /* commands with a socket */
static uint64_t key[2];

/* Listens at an abstract address: without a file, no command can remove or replace the socket, or reach a
   socket outside this world's network. */
static int listen_at(const uint8_t *name, size_t length) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  memcpy(address.sun_path + 1, name, length);
  int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  if (bind(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)) == 0) return fd;
  close(fd);
  return -1;
}

void telemetry_begin(struct command *command, const uint8_t *name, size_t length) {
  if (key[0] == 0 && getrandom(key, sizeof key, 0) != sizeof key) return;
  struct telemetry *telemetry = malloc(sizeof *telemetry);
  if (telemetry == NULL) return;
  memset(telemetry, 0, offsetof(struct telemetry, buffer));
  telemetry->fd = listen_at(name, length);
  if (telemetry->fd < 0) {
    free(telemetry);
    return;
  }
  command->telemetry = telemetry;
  listening++;
  watch_add(telemetry->fd, EPOLLIN, SOURCE_REPORTS, command->id);
}

static void flush(struct command *command) {
  struct telemetry *telemetry = command->telemetry;
  if (telemetry->length == 0) return;
  channel_send(FRAME_TELEMETRY, command->id, telemetry->buffer, telemetry->length);
  telemetry->length = 0;
}

static void tell(struct command *command, const uint8_t *message, size_t length) {
  struct telemetry *telemetry = command->telemetry;
  size_t text = length - MESSAGE_HEADER;
  if (telemetry->length + TELEMETRY_HEADER_SIZE + text > BUFFER) flush(command);
  if (telemetry->length == 0) telemetry->since = now_ms();
  uint8_t *at = telemetry->buffer + telemetry->length;
  at[0] = (uint8_t)text;
  at[1] = (uint8_t)(text >> 8);
  at[2] = message[0];
  at[3] = message[1] & CUT;
  memcpy(at + TELEMETRY_HEADER_SIZE, message + MESSAGE_HEADER, text);
  telemetry->length += TELEMETRY_HEADER_SIZE + text;
}

/* Finds the slot of a message's hash, or the free slot to put the hash in. */
static uint64_t *place_of(struct telemetry *telemetry, const uint8_t *message, size_t length, uint64_t *hash) {
  *hash = (siphash(key, message + MESSAGE_HEADER, length - MESSAGE_HEADER) ^ (uint64_t)message[0] << 8) | 1;
  size_t at = (size_t)(*hash >> 32) % PLACES;
  while (telemetry->known[at] != 0 && telemetry->known[at] != *hash) at = (at + 1) % PLACES;
  return &telemetry->known[at];
}

/* Takes a message. Any process inside may be the sender: malformed messages are counted and dropped. */
static void take(struct command *command, const uint8_t *message, size_t length, bool truncated) {
  struct telemetry *telemetry = command->telemetry;
  if (truncated || length < MESSAGE_HEADER || message[0] < 1 || message[0] > KIND_COUNT) {
    telemetry->missed++;
    return;
  }
  telemetry->missed += (uint64_t)message[2] | (uint64_t)message[3] << 8;
  unsigned kind = message[0] - 1;
  uint64_t hash, *place = place_of(telemetry, message, length, &hash);
  telemetry->counts[kind]++;
  if (*place == hash) return;
  if (telemetry->told[kind] == FRAME_MAX_TELEMETRY || !channel_has_room()) {
    telemetry->untold++;
    return;
  }
  *place = hash;
  telemetry->told[kind]++;
  tell(command, message, length);
}

/* True: more messages may be waiting. */
static bool take_some(struct command *command) {
  static uint8_t data[MESSAGES_A_TURN][MESSAGE_MAX];
  struct mmsghdr messages[MESSAGES_A_TURN];
  struct iovec parts[MESSAGES_A_TURN];
  for (int i = 0; i < MESSAGES_A_TURN; i++) {
    parts[i] = (struct iovec){data[i], MESSAGE_MAX};
    messages[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &parts[i], .msg_iovlen = 1}};
  }
  /* No room for control messages: the kernel closes descriptors sent along. */
  int count = recvmmsg(command->telemetry->fd, messages, MESSAGES_A_TURN, MSG_DONTWAIT, NULL);
  for (int i = 0; i < count; i++) {
    take(command, data[i], messages[i].msg_len, (messages[i].msg_hdr.msg_flags & MSG_TRUNC) != 0);
  }
  return count == MESSAGES_A_TURN;
}

void telemetry_hear(uint32_t id) {
  struct command *command = command_find(id);
  if (command != NULL && command->telemetry != NULL && command->telemetry->fd >= 0) take_some(command);
}

static void stop_listening(struct telemetry *telemetry) {
  if (telemetry->fd < 0) return;
  close(telemetry->fd);
  telemetry->fd = -1;
  listening--;
}

void telemetry_settle(struct command *command) {
  struct telemetry *telemetry = command->telemetry;
  if (telemetry == NULL) return;
  for (int turn = 0; telemetry->fd >= 0 && turn < LAST_TURNS && take_some(command); turn++) continue;
  stop_listening(telemetry);
  flush(command);
}

int telemetry_flush_old(void) {
  int64_t next = -1;
  if (listening == 0) return -1;
  int64_t now = now_ms();
  for (struct command *command = command_after(NULL); command != NULL; command = command_after(command)) {
    struct telemetry *telemetry = command->telemetry;
    if (telemetry == NULL || telemetry->length == 0) continue;
    int64_t left = telemetry->since + OLD_MS - now;
    if (left <= 0) flush(command);
    else if (next < 0 || left < next) next = left;
  }
  return next < 0 ? -1 : (int)next + 1;
}

static void put_number(struct field_writer *writer, const char *name, uint64_t number) {
  char text[TELEMETRY_NUMBER_MAX];
  int length = snprintf(text, sizeof text, "%s=%llu", name, (unsigned long long)number);
  field_put(writer, TAG_HEARD, text, (size_t)length);
}

void telemetry_put(const struct command *command, struct field_writer *writer) {
  const struct telemetry *telemetry = command->telemetry;
  if (telemetry == NULL) return;
  for (size_t i = 0; i < KIND_COUNT; i++) put_number(writer, KINDS[i], telemetry->counts[i]);
  put_number(writer, "untold", telemetry->untold);
  put_number(writer, "missed", telemetry->missed);
}

void telemetry_end(struct command *command) {
  if (command->telemetry == NULL) return;
  stop_listening(command->telemetry);
  free(command->telemetry);
  command->telemetry = NULL;
}
