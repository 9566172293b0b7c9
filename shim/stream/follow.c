#define _GNU_SOURCE
#include "follow.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../client/say.h"
#include "../client/terminal.h"
#include "events.h"
#include "refusal.h"
#include "signals.h"
#include "standard.h"

/* Limit of the protocol (api/README.md): bytes of input sent ahead of the command. */
#define INPUT_AHEAD (256UL << 10)

/* First byte of a binary message. */
enum channel { INPUT = 0, OUTPUT = 1, ERRORS = 2, IGNORED = 256 };

/* A text message has the lists of a command's changes in it, which have limits of their own. */
#define MOST_TEXT (16UL << 20)

/* Pings of a server that reads no answers are not answered beyond this. */
#define MOST_UNSENT 4096

#define EXIT_BROKEN_PIPE (128 + SIGPIPE)

static void add_text(struct stream *stream, const char *text) {
  websocket_add(&stream->unsent, TEXT, text, strlen(text));
}

/* Writes what is there to write. Returns an exit code for an output that takes no more, else GOES_ON. A closed pipe
   ends this process by SIGPIPE, as any program before `head`; the code is for callers that ignore SIGPIPE. */
static int write_output(struct stream *stream) {
  while (stream->output_length > 0) {
    signals_let();
    ssize_t written = write_now(stream->output_fd, stream->output, stream->output_length);
    signals_hold();
    if (written < 0 && (errno == EAGAIN || errno == EINTR)) return GOES_ON;
    if (written < 0 && errno == EPIPE) return EXIT_BROKEN_PIPE;
    if (written < 0) {
      say("Cannot write standard ", stream->output_fd == STDOUT_FILENO ? "output" : "error", ": ", strerror(errno), NULL);
      return EXIT_FAILED;
    }
    stream->output += written;
    stream->output_length -= (size_t)written;
  }
  return GOES_ON;
}

static int take_binary(struct stream *stream, const struct piece *piece) {
  const char *bytes = piece->bytes;
  size_t length = piece->length;
  if (piece->first) stream->channel = 0;
  if (stream->channel == 0 && length > 0) {
    unsigned char channel = (unsigned char)*bytes++;
    stream->channel = channel == OUTPUT || channel == ERRORS ? channel : IGNORED;
    length--;
  }
  if (stream->channel == IGNORED) return GOES_ON;
  if (stream->has_terminal || stream->asker != NULL) terminal_seen(bytes, length);
  stream->output = bytes;
  stream->output_length = length;
  stream->output_fd = stream->channel == ERRORS ? STDERR_FILENO : STDOUT_FILENO;
  return write_output(stream);
}

static int take_text(struct stream *stream, const struct piece *piece) {
  struct buffer *text = &stream->text;
  if (piece->first) text->length = 0;
  if (text->length + piece->length > MOST_TEXT) {
    say("The broker's answer is longer than 16 MiB", NULL);
    return EXIT_FAILED;
  }
  buffer_add(text, piece->bytes, piece->length);
  if (!piece->last) return GOES_ON;
  if (text->failed) {
    say("There is no memory for the broker's answer", NULL);
    return EXIT_FAILED;
  }
  return events_take(stream, text->data, text->length);
}

static void take_ping(struct stream *stream, const struct piece *piece) {
  if (piece->first) stream->ping.length = 0;
  buffer_add(&stream->ping, piece->bytes, piece->length);
  if (piece->last && stream->unsent.length < MOST_UNSENT) websocket_add(&stream->unsent, PONG, stream->ping.data, stream->ping.length);
}

static int take(struct stream *stream, const struct piece *piece) {
  switch (piece->opcode) {
    case BINARY: return take_binary(stream, piece);
    case TEXT: return take_text(stream, piece);
    case PING: take_ping(stream, piece); return GOES_ON;
    case CLOSE: return refusal_no_reply();
    default: return GOES_ON;
  }
}

/* Reads what has come, up to output that waits for room. */
static int read_received(struct stream *stream) {
  int code = write_output(stream);
  while (code == GOES_ON && stream->output_length == 0) {
    struct piece piece;
    size_t used;
    enum read read = websocket_read(&stream->frames, stream->received + stream->begin, stream->end - stream->begin, &used, &piece);
    stream->begin += used;
    if (read == MORE) return GOES_ON;
    if (read == WRONG) return refusal_not_json(stream->received, stream->end);
    code = take(stream, &piece);
  }
  return code;
}

/* Only for a stream that has read all received bytes: `output` may point to others. */
static int receive(struct stream *stream) {
  ssize_t got = recv(stream->broker.fd, stream->received, sizeof stream->received, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return GOES_ON;
  if (got <= 0) return refusal_no_reply();
  stream->begin = 0;
  stream->end = (size_t)got;
  return GOES_ON;
}

/* A broker that reads no more may have written before why: what cannot be sent is forgotten. */
static void send_unsent(struct stream *stream) {
  struct buffer *unsent = &stream->unsent;
  ssize_t sent = send(stream->broker.fd, unsent->data + stream->sent, unsent->length - stream->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (sent < 0) stream->takes_input = false;
  stream->sent += sent < 0 ? unsent->length - stream->sent : (size_t)sent;
  if (stream->sent == unsent->length) stream->sent = unsent->length = 0;
}

static bool wants_input(const struct stream *stream) {
  return stream->takes_input && stream->started && stream->unsent.length == 0 && stream->untaken < INPUT_AHEAD;
}

static size_t digits(const char *at, const char *end) {
  size_t count = 0;
  while (at + count < end && at[count] >= '0' && at[count] <= '9') count++;
  return count;
}

/* Whether a report of keys ends as one with Ctrl: `;M`, an event type of kitty perhaps, `last`. Modifiers are bits, plus one. */
static bool has_ctrl(const char *at, const char *end, char last) {
  if (at == end || *at != ';') return false;
  size_t count = digits(++at, end);
  long modifiers = count > 0 && count < 4 ? strtol(at, NULL, 10) - 1 : 0;
  at += count;
  if (last == 'u' && at < end && *at == ':') at += 1 + digits(at + 1, end);
  return at < end && (last == '~' ? *at == ';' : *at == last) && (modifiers & 4) != 0;
}

/* Ctrl-Z as a byte, and as kitty's `CSI 122:… ; M u` and xterm's `CSI 27 ; M ; 122 ~` have it. */
static bool has_suspend(const char *bytes, size_t length) {
  const char *end = bytes + length;
  if (memchr(bytes, 'Z' & 0x1f, length) != NULL) return true;
  for (const char *at = bytes; (at = memmem(at, (size_t)(end - at), "\033[", 2)) != NULL; at++) {
    const char *key = at + 2;
    if (end - key > 3 && memcmp(key, "122", 3) == 0) {
      for (key += 3; key < end && (*key == ':' || (*key >= '0' && *key <= '9')); key++) continue;
      if (has_ctrl(key, end, 'u')) return true;
    } else if (end - key > 2 && memcmp(key, "27", 2) == 0 && has_ctrl(key + 2, end, '~') &&
               memmem(key, (size_t)(end - key), ";122~", 5) != NULL) {
      return true;
    }
  }
  return false;
}

static void note_suspend(struct stream *stream, const char *bytes, size_t length) {
  struct timespec now;
  if (!has_suspend(bytes, length)) return;
  clock_gettime(CLOCK_MONOTONIC, &now);
  stream->suspended = now.tv_sec == 0 ? 1 : now.tv_sec;
}

static void read_input(struct stream *stream) {
  char *frame = stream->input;
  size_t room = INPUT_AHEAD - stream->untaken;
  signals_let();
  ssize_t got = read_now(STDIN_FILENO, frame + 1, room < INPUT_FRAME ? room : INPUT_FRAME);
  signals_hold();
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  /* Only an attached command is sure to have a terminal here, and one that has hung up is none: the command goes on. */
  stream->left = got <= 0 && stream->path != NULL && !isatty(STDIN_FILENO);
  if (stream->left) return;
  if (got < 0) say("Cannot read standard input: ", strerror(errno), NULL);
  if (got <= 0) {
    stream->takes_input = false;
    add_text(stream, "{\"type\":\"stdin_eof\"}");
    return;
  }
  stream->left = stream->leaves != NULL && stream->leaves(frame + 1, (size_t)got);
  if (stream->left) return;
  if (stream->has_terminal) note_suspend(stream, frame + 1, (size_t)got);
  frame[0] = INPUT;
  stream->untaken += (size_t)got;
  websocket_add(&stream->unsent, BINARY, frame, 1 + (size_t)got);
}

/* The first signal is the command's. Before the command has started the signal ends the call; and when the terminal of an attached command
   goes, the command goes on. */
static int pass_signal(struct stream *stream) {
  char text[64];
  if (signals_first() == 0 || stream->passed) return GOES_ON;
  if (!stream->started || (stream->path != NULL && signals_first() != SIGINT)) return 128 + signals_first();
  stream->passed = true;
  snprintf(text, sizeof text, "{\"type\":\"signal\",\"signal\":\"%s\"}", signals_first_name());
  add_text(stream, text);
  return GOES_ON;
}

static void add_size(struct stream *stream, unsigned columns, unsigned rows) {
  char text[64];
  snprintf(text, sizeof text, "{\"type\":\"resize\",\"cols\":%u,\"rows\":%u}", columns, rows);
  add_text(stream, text);
}

/* Takes the terminal once the command has it, and again after a stop or a question; and passes its size on. */
static void follow_terminal(struct stream *stream) {
  /* Programs repaint only when the size changes. */
  static const struct timespec BETWEEN = {0, 80000000};
  unsigned columns, rows;
  if (!stream->has_terminal || !stream->started || !(signals_changed() || stream->covered)) return;
  terminal_take();
  terminal_size(&columns, &rows);
  if (stream->covered) {
    add_size(stream, columns, rows > 1 ? rows - 1 : 2);
    send_unsent(stream);
    nanosleep(&BETWEEN, NULL);
    stream->covered = false;
  }
  add_size(stream, columns, rows);
}

/* Waits for whatever can go on: bytes of the broker or of standard input, room for bytes, or a signal. */
static int wait_for_any(struct stream *stream) {
  bool reads = stream->output_length == 0, sends = stream->unsent.length > 0;
  struct pollfd broker = {reads || sends ? stream->broker.fd : -1, (short)((reads ? POLLIN : 0) | (sends ? POLLOUT : 0)), 0};
  struct pollfd input = {wants_input(stream) ? STDIN_FILENO : -1, POLLIN, 0};
  struct pollfd output = {reads ? -1 : stream->output_fd, POLLOUT, 0};
  struct pollfd all[] = {broker, input, output};
  if (ppoll(all, 3, NULL, signals_mask()) < 0) return GOES_ON;
  if (all[1].revents != 0) read_input(stream);
  if (sends && (all[0].revents & (POLLOUT | POLLERR | POLLHUP)) != 0) send_unsent(stream);
  return reads && (all[0].revents & (POLLIN | POLLERR | POLLHUP)) != 0 ? receive(stream) : GOES_ON;
}

int follow(struct stream *stream) {
  int code = GOES_ON;
  while (code == GOES_ON) {
    code = stream->left ? 0 : read_received(stream);
    if (code == GOES_ON) code = pass_signal(stream);
    if (code == GOES_ON) follow_terminal(stream);
    if (code == GOES_ON) code = wait_for_any(stream);
  }
  if (stream->has_terminal) terminal_restore();
  else if (stream->asker != NULL) terminal_left();
  return code;
}
