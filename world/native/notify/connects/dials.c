#define _GNU_SOURCE
#include "notify/connects/dials.h"

#include <errno.h>
#include <linux/audit.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/callers.h"
#include "lib/channel.h"
#include "lib/clock.h"
#include "lib/commands.h"
#include "lib/fields.h"
#include "lib/frames.h"
#include "lib/watch.h"
#include "notify/connects/closed_ports.h"
#include "notify/connects/dial_calls.h"
#include "notify/connects/own_sockets.h"
#include "notify/notices.h"

/* Bounds for pending dials in a world; further dials get EAGAIN. Each dial takes two descriptors. */
#define WAITING_LEAST 64
#define WAITING_MOST 1024
/* Largest datagram with an address. The kernel's own bound (net.core.wmem_max) is less. */
#define DATA_MAX (256 * 1024)
/* Retry delay of a pending dial, first and largest. */
#define FIRST_MS 1
#define LAST_MS 20
/* Refused paths reported for each command. */
#define TOLD_MAX 16

#if defined(__x86_64__)
#define OWN_AUDIT AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_AUDIT AUDIT_ARCH_AARCH64
#endif

struct dial {
  struct dial *next;
  int listener;
  uint64_t id;
  uint32_t number;
  uint32_t command; /* the caller's */
  int socket; /* PID 1's duplicate */
  bool watched; /* epoll reports when the connection is made or fails */
  struct dial_address address;
  bool sends;
  bool blocks; /* the caller's own call would wait */
  int64_t again, deadline; /* deadline 0: no timeout (SO_SNDTIMEO) */
  int delay_ms;
  struct dial_data data;
  uint8_t bytes[]; /* of `data` */
};

static struct dial *all;
static unsigned count, most = WAITING_LEAST;
static uint32_t last_number;

uint64_t dials_fit(uint64_t descriptors) {
  uint64_t fitting = descriptors / 32;
  most = fitting < WAITING_LEAST ? WAITING_LEAST : fitting > WAITING_MOST ? WAITING_MOST : (unsigned)fitting;
  return 2 * most;
}

/* In log mode the listener gets calls of other ABIs too. */
bool dial_is_own_call(const struct seccomp_data *call) {
  return call->arch == OWN_AUDIT;
}

static bool is_dial(const struct seccomp_data *call) {
  return dial_is_own_call(call) && (call->nr == SYS_connect || call->nr == SYS_sendto);
}

static bool is_unfinished(int error) {
  return error == EINPROGRESS || error == EALREADY || error == EAGAIN || error == EINTR;
}

static void release(struct dial *dial) {
  if (dial->watched) watch_remove(dial->socket);
  if (dial->socket >= 0) dial_close(dial->socket);
  if (dial->address.target >= 0) close(dial->address.target);
  free(dial);
}

/* Makes the call; true when the caller has been answered. The kernel reports when a begun connection is made;
   room in the queue of a Unix server needs polling. */
static bool try(struct dial *dial) {
  int64_t sent = 0;
  int error = dial->sends ? dial_send(dial->socket, &dial->address, &dial->data, &sent, &dial->blocks)
                          : dial_connect(dial->socket, &dial->address, &dial->blocks);
  if (is_unfinished(error) && dial->blocks) {
    if (!dial->watched && error == EINPROGRESS) {
      dial->number = ++last_number;
      watch_add(dial->socket, EPOLLOUT | EPOLLONESHOT, SOURCE_DIAL, dial->number);
      dial->watched = true;
    }
    return false;
  }
  if (error == EINTR) error = EAGAIN;
  if (!dial->sends && !own_sockets_beside_hosts()) closed_ports_note(dial->command, dial->socket, &dial->address, error);
  notice_return(dial->listener, dial->id, sent, error);
  return true;
}

static int64_t deadline_of(int socket) {
  struct timeval timeout = {0, 0};
  socklen_t length = sizeof timeout;
  if (getsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &timeout, &length) < 0) return 0;
  int64_t ms = (int64_t)timeout.tv_sec * 1000 + timeout.tv_usec / 1000;
  return ms == 0 ? 0 : now_ms() + ms;
}

static void put_off(struct dial *dial) {
  if (count >= most) {
    notice_return(dial->listener, dial->id, 0, EAGAIN);
    return release(dial);
  }
  dial->deadline = deadline_of(dial->socket);
  dial->delay_ms = FIRST_MS;
  dial->again = now_ms() + dial->delay_ms;
  dial->next = all;
  all = dial;
  count++;
}

/* True: the dial is no longer pending. */
static bool retry(struct dial *dial, int64_t now) {
  if (!notice_waits(dial->listener, dial->id) || try(dial)) return true;
  if (dial->deadline != 0 && now >= dial->deadline) {
    notice_return(dial->listener, dial->id, 0, dial->address.target < 0 && !dial->sends ? EINPROGRESS : EAGAIN);
    return true;
  }
  if (dial->delay_ms < LAST_MS) dial->delay_ms *= 2;
  dial->again = now + dial->delay_ms;
  return false;
}

/* Removes a dial from the pending list. */
static void drop(struct dial **link) {
  struct dial *dial = *link;
  *link = dial->next;
  count--;
  release(dial);
}

void dials_hear(uint32_t number) {
  struct dial **link = &all;
  while (*link != NULL && (*link)->number != number) link = &(*link)->next;
  if (*link != NULL && retry(*link, now_ms())) drop(link);
}

int dials_retry(void) {
  int64_t next = -1, now = all == NULL ? 0 : now_ms();
  struct dial **link = &all;
  while (*link != NULL) {
    struct dial *dial = *link;
    if (dial->again <= now && retry(dial, now)) {
      drop(link);
      continue;
    }
    int64_t left = dial->again > now ? dial->again - now : 0;
    if (next < 0 || left < next) next = left;
    link = &dial->next;
  }
  return next < 0 ? -1 : (int)next + 1;
}

void dials_forget(int listener) {
  struct dial **link = &all;
  while (*link != NULL) {
    if ((*link)->listener == listener) drop(link);
    else link = &(*link)->next;
  }
}

void dial_tell_refused(struct command *command, const char *path) {
  uint8_t payload[FIELD_HEADER_SIZE + sizeof(struct sockaddr_storage)];
  struct field_writer writer = {.data = payload, .capacity = sizeof payload};
  if (command == NULL || command->sockets_told == TOLD_MAX) return;
  command->sockets_told++;
  field_put_string(&writer, TAG_PATH, path);
  channel_send(FRAME_REFUSED_SOCKET, command->id, payload, writer.length);
}

/* Reads the whole call: address, data, socket. Returns 0 or the errno for the caller. */
static int read_call(const struct seccomp_notif *notice, struct dial *dial, char *refused) {
  const __u64 *args = notice->data.args;
  pid_t task = (pid_t)notice->pid;
  int at = dial->sends ? 4 : 1;
  dial->socket = dial_socket(task, (int)args[0]);
  if (dial->socket < 0) return errno == ESRCH || errno == EMFILE || errno == ENFILE ? EAGAIN : errno;
  int error = dial_address_read(task, args[at], args[at + 1], &dial->address, refused);
  if (error != 0) return error;
  if (dial->data.size > 0 && !callers_memory(task, args[1], dial->bytes, dial->data.size)) return EFAULT;
  return 0;
}

static struct dial *begin(int listener, const struct seccomp_notif *notice, const struct command *command) {
  bool sends = notice->data.nr == SYS_sendto;
  uint64_t size = sends ? notice->data.args[2] : 0;
  if (size > DATA_MAX) return NULL;
  struct dial *dial = malloc(sizeof *dial + size);
  if (dial == NULL) return NULL;
  *dial = (struct dial){.listener = listener,
                        .id = notice->id,
                        .command = command == NULL ? 0 : command->id,
                        .socket = -1,
                        .address.target = -1,
                        .sends = sends,
                        .data = {sends ? (int)notice->data.args[3] : 0, size, dial->bytes}};
  return dial;
}

/* Never lets the caller's own call go on: another thread could swap the socket behind the descriptor, or the
   address in memory, between the check and the kernel's read. PID 1 reads the memory and duplicates the
   socket once, and uses these copies for both the check and the call. */
static void serve(int listener, const struct seccomp_notif *notice, struct command *command) {
  char refused[sizeof(struct sockaddr_storage)] = "";
  struct dial *dial = begin(listener, notice, command);
  if (dial == NULL) {
    notice_return(listener, notice->id, 0, EMSGSIZE);
    return;
  }
  int error = read_call(notice, dial, refused);
  /* After the caller's death its pid, and the memory just read, may belong to another process. */
  if (!notice_waits(listener, notice->id)) return release(dial);
  if (error == 0) {
    if (try(dial)) release(dial);
    else put_off(dial);
    return;
  }
  if (refused[0] != 0) dial_tell_refused(command, refused);
  notice_return(listener, notice->id, 0, error);
  release(dial);
}

bool dial_serve(int listener, const struct seccomp_notif *notice, struct command *command) {
  if (!is_dial(&notice->data)) return false;
  serve(listener, notice, command);
  return true;
}
