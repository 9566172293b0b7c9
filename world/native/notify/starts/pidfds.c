#define _GNU_SOURCE
#include "notify/starts/pidfds.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/commands.h"
#include "lib/pidfd_info.h"
#include "lib/watch.h"

/* Processes watched at once; the end of further processes goes unnoticed. */
#define LIVES 4096
#define BUCKETS 1024

static struct tracked lives[LIVES];
static int buckets[BUCKETS], unused = -1;
static int used, limit = LIVES;
static uint32_t awaited; /* events to ask poll(2) for; POLLIN and EPOLLIN have the same value */
static bool began;

/* Most programs end within a few milliseconds, and a wake-up for each end costs more than all other work on a
   process. In its first second a process is therefore polled: at each start of another process and every
   LOOK_MS. Later epoll watches the process. */
#define YOUNG_MS 1000
#define LOOK_MS 10
static int young[PIDFDS_YOUNG];
static int64_t born[PIDFDS_YOUNG];
static int young_count;
static int64_t looked;

uint64_t pidfds_fit(uint64_t descriptors) {
  uint64_t spare = descriptors > DESCRIPTORS_OTHER ? (descriptors - DESCRIPTORS_OTHER) / 4 : 0;
  if (spare < LIVES) limit = (int)spare;
  return (uint64_t)limit;
}

void pidfds_open(void) {
  if (began) return;
  for (int i = 0; i < BUCKETS; i++) buckets[i] = -1;
  /* A kernel with PIDFD_PROCESS_EXIT reports the exit status once the process was reaped, and signals reaping
     by a hang-up, which poll(2) always reports. */
  struct pidfd_process info = {.mask = PIDFD_PROCESS_EXIT};
  int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
  awaited = self >= 0 && ioctl(self, PIDFD_PROCESS, &info) == 0 ? 0 : POLLIN;
  if (self >= 0) close(self);
  began = true;
}

static int *link_of(pid_t pid) {
  int *link = &buckets[pid % BUCKETS];
  while (*link >= 0 && lives[*link].pid != pid) link = &lives[*link].next;
  return link;
}

int pidfds_find(pid_t pid) {
  return *link_of(pid);
}

struct tracked *pidfds_at(int slot) {
  return &lives[slot];
}

static int take_slot(void) {
  if (unused < 0) return used < limit ? used++ : -1;
  int slot = unused;
  unused = lives[slot].next;
  return slot;
}

int pidfds_add(pid_t pid, uint32_t command, uint32_t number) {
  int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
  int slot = pidfd < 0 ? -1 : take_slot();
  if (slot < 0) {
    if (pidfd >= 0) close(pidfd);
    return -1;
  }
  lives[slot] = (struct tracked){pid, pidfd, command, number, -1};
  *link_of(pid) = slot;
  if (young_count == PIDFDS_YOUNG) {
    watch_add(pidfd, awaited, SOURCE_PIDFD, (uint32_t)slot);
    return slot;
  }
  young[young_count] = slot;
  born[young_count++] = now_ms();
  return slot;
}

static void grow_up(int at) {
  young_count--;
  young[at] = young[young_count];
  born[at] = born[young_count];
}

/* Orders processes found dead together by falling number: a child ended before its parent. */
static void put_in_order(int *ended, int count, int slot) {
  while (count > 0 && lives[ended[count - 1]].number < lives[slot].number) {
    ended[count] = ended[count - 1];
    count--;
  }
  ended[count] = slot;
}

int pidfds_look(int ended[PIDFDS_YOUNG]) {
  struct pollfd states[PIDFDS_YOUNG];
  int count = 0;
  if (young_count == 0) return 0;
  looked = now_ms();
  for (int i = 0; i < young_count; i++) {
    states[i] = (struct pollfd){.fd = lives[young[i]].pidfd, .events = (short)awaited};
  }
  if (poll(states, (nfds_t)young_count, 0) < 0) return 0;
  for (int i = young_count - 1; i >= 0; i--) {
    int slot = young[i];
    bool over = (states[i].revents & (awaited == 0 ? POLLHUP : POLLIN)) != 0;
    if (!over && looked - born[i] < YOUNG_MS) continue;
    if (over) put_in_order(ended, count++, slot);
    else watch_add(lives[slot].pidfd, awaited, SOURCE_PIDFD, (uint32_t)slot);
    grow_up(i);
  }
  return count;
}

int pidfds_look_in(void) {
  if (young_count == 0) return -1;
  int64_t left = looked + LOOK_MS - now_ms();
  return left > 0 ? (int)left : 0;
}

bool pidfds_has_ended(int slot) {
  struct pollfd state = {.fd = lives[slot].pidfd, .events = (short)awaited};
  return poll(&state, 1, 0) > 0 && (state.revents & (awaited == 0 ? POLLHUP : POLLIN)) != 0;
}

bool pidfds_status(int slot, uint32_t *status) {
  struct pidfd_process info = {.mask = PIDFD_PROCESS_EXIT};
  if (ioctl(lives[slot].pidfd, PIDFD_PROCESS, &info) < 0 || (info.mask & PIDFD_PROCESS_EXIT) == 0) return false;
  *status = (uint32_t)info.exit_code;
  return true;
}

void pidfds_forget(int slot) {
  for (int i = 0; i < young_count; i++) {
    if (young[i] != slot) continue;
    grow_up(i);
    break;
  }
  *link_of(lives[slot].pid) = lives[slot].next;
  if (lives[slot].pidfd >= 0) close(lives[slot].pidfd);
  lives[slot] = (struct tracked){.pidfd = -1, .next = unused};
  unused = slot;
}

int pidfds_of(uint32_t command, int slot) {
  while (slot < used && (lives[slot].pid == 0 || lives[slot].command != command)) slot++;
  return slot < used ? slot : -1;
}
