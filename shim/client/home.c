#define _GNU_SOURCE
#include "home.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Names of agents in config.yaml: no name leads to another folder. */
#define AGENT_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:@-"
#define AGENT_LENGTH 128

void home_path(char path[PATH_MAX], const char *below) {
  const char *root = getenv("SUBSTRATE_HOME"), *home = getenv("HOME");
  bool given = root != NULL && *root != 0;
  int length = snprintf(path, PATH_MAX, "%s%s/%s", given ? root : home == NULL ? "" : home, given ? "" : "/.substrate", below);
  if (length < 0 || length >= PATH_MAX) path[0] = 0;
}

bool is_socket(const char *path) {
  struct stat file;
  return lstat(path, &file) == 0 && S_ISSOCK(file.st_mode);
}

bool home_own_socket(char path[PATH_MAX], const char *agent) {
  char below[sizeof "sock/agents/.sock" + AGENT_LENGTH];
  size_t length = strlen(agent);
  if (length == 0 || length > AGENT_LENGTH || strspn(agent, AGENT_CHARACTERS) != length) return false;
  snprintf(below, sizeof below, "sock/agents/%s.sock", agent);
  home_path(path, below);
  return is_socket(path);
}
