#define _GNU_SOURCE
#include "run/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "lib/descriptors.h"

/* In the devpts itself: no command can replace a name there, as a command of a root world could with
   /dev/ptmx. */
#define MULTIPLEXER "/dev/pts/ptmx"

static struct winsize size_of(uint64_t columns, uint64_t rows) {
  return (struct winsize){.ws_col = columns > UINT16_MAX ? UINT16_MAX : (unsigned short)columns,
                          .ws_row = rows > UINT16_MAX ? UINT16_MAX : (unsigned short)rows};
}

/* Opens the other end by its master, not by a name. Backspace erases whole characters of UTF-8, as in a person's terminal. */
static int open_slave(int master, uint64_t columns, uint64_t rows) {
  struct winsize size = size_of(columns, rows);
  struct termios modes;
  int unlocked = 0;
  if (ioctl(master, TIOCSPTLCK, &unlocked) < 0 || ioctl(master, TIOCSWINSZ, &size) < 0) return -1;
  int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (slave < 0) return -1;
  if (tcgetattr(slave, &modes) < 0) return close_keeping_errno(slave, -1);
  modes.c_iflag |= IUTF8;
  return tcsetattr(slave, TCSANOW, &modes) < 0 ? close_keeping_errno(slave, -1) : slave;
}

int terminal_open(uint64_t columns, uint64_t rows, int ends[2]) {
  ends[0] = open(MULTIPLEXER, O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  if (ends[0] < 0) return -1;
  ends[1] = open_slave(ends[0], columns, rows);
  return ends[1] < 0 ? close_keeping_errno(ends[0], -1) : 0;
}

void terminal_resize(int master, uint64_t columns, uint64_t rows) {
  struct winsize size = size_of(columns, rows);
  ioctl(master, TIOCSWINSZ, &size);
}

bool terminal_signal(int master, int signal) {
  pid_t group = 0;
  return ioctl(master, TIOCGPGRP, &group) == 0 && group > 1 && kill(-group, signal) == 0;
}

int terminal_end_character(int master) {
  struct termios modes;
  if (tcgetattr(master, &modes) < 0 || (modes.c_lflag & ICANON) == 0) return -1;
  return modes.c_cc[VEOF] == _POSIX_VDISABLE ? -1 : modes.c_cc[VEOF];
}
