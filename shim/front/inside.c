#define _GNU_SOURCE
#include "inside.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "../client/home.h"

/* PID 1 of a world (api/setup/native.mjs). */
static const char INIT[] = "substrate-init\n";

static bool is_init(void) {
  char name[sizeof INIT] = "";
  int file = open("/proc/1/comm", O_RDONLY | O_CLOEXEC);
  ssize_t length = file < 0 ? -1 : read(file, name, sizeof name);
  if (file >= 0) close(file);
  return length == sizeof INIT - 1 && memcmp(name, INIT, sizeof INIT - 1) == 0;
}

static bool has_broker(void) {
  char path[PATH_MAX];
  home_path(path, "sock/control.sock");
  if (is_socket(path)) return true;
  home_path(path, "sock/agent.sock");
  return is_socket(path);
}

/* A process that a person brings into a world with nsenter(1) has no filter, and is not taken for a command. */
bool inside_world(void) {
  if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) return false;
  return is_init() && !has_broker();
}
