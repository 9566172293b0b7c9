#include "changes/answers.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "lib/fields.h"

#define REQUEST_MAX (1024 * 1024)

static bool read_all(void *data, size_t length) {
  char *at = data;
  while (length > 0) {
    ssize_t got = read(STDIN_FILENO, at, length);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    length -= (size_t)got;
  }
  return true;
}

void answers_send(const struct text *answer) {
  uint8_t head[4];
  if (answer->length > UINT32_MAX) exit(1);
  write_u32(head, (uint32_t)answer->length);
  if (!write_all(STDOUT_FILENO, head, sizeof head) || !write_all(STDOUT_FILENO, answer->data, answer->length)) exit(1);
}

void answer_failed(struct text *answer, const char *what, const char *why) {
  answer->length = 0;
  text_field(answer, "failed");
  text_field(answer, what);
  text_field(answer, why);
}

/* PDEATHSIG follows the thread that started this process: Node's main thread, which ends with the broker. Set after the user namespace
   was entered, as a change of credentials clears it. */
void answers_end_with_broker(bool ends) {
  struct pollfd output = {.fd = STDOUT_FILENO};
  if (prctl(PR_SET_PDEATHSIG, ends ? SIGKILL : 0) < 0) exit(1);
  /* The broker may have died before that, and somebody else be the parent by now: then nobody reads the answers. */
  if (ends && poll(&output, 1, 0) > 0 && (output.revents & (POLLERR | POLLHUP)) != 0) exit(1);
}

int answers_serve(request_taker take) {
  uint8_t head[4];
  bool more = true;
  signal(SIGPIPE, SIG_IGN);
  while (more && read_all(head, sizeof head)) {
    uint32_t length = read_u32(head);
    struct text answer = {0};
    if (length > REQUEST_MAX) return 1;
    char *request = held_grow(NULL, length + 1);
    if (!read_all(request, length)) return 1;
    struct text_reader reader = {request, request + length};
    more = take(&reader, &answer);
    answers_send(&answer);
    free(request);
    text_clear(&answer);
  }
  return 0;
}
