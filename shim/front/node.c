#define _GNU_SOURCE
#include "node.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../client/say.h"
#include "notify.h"

#define FAILED 125

/* Below the checkout. The first is a link to the Node that built this program (api/setup/node-link.mjs). */
#define NODE ".build/node"
#define LAUNCHER "api/bin/substrate.mjs"

/* Stores the folder two above this program, with a slash at the end. */
static bool read_checkout(char path[PATH_MAX]) {
  ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
  if (length < 0) return false;
  path[length] = 0;
  for (int i = 0; i < 2; i++) {
    char *slash = strrchr(path, '/');
    if (slash == NULL) return false;
    *slash = 0;
  }
  strcat(path, "/");
  return true;
}

/* A service manager starts the broker, or a world agent. */
static bool is_service(char *const words[], size_t count) {
  if (count > 1 && strcmp(words[1], "agent") == 0) return true;
  return count > 2 && strcmp(words[1], "broker") == 0 && strcmp(words[2], "start") == 0;
}

int node_become(char *const words[]) {
  static char checkout[PATH_MAX], node[PATH_MAX + sizeof NODE], launcher[PATH_MAX + sizeof LAUNCHER];
  size_t count = 0;
  while (words[count] != NULL) count++;
  if (is_service(words, count) && !notify_open()) return FAILED;
  char **all = calloc(count + 3, sizeof *all);
  if (all == NULL || !read_checkout(checkout)) {
    say("cannot find its own folder: ", strerror(errno), NULL);
    return FAILED;
  }
  snprintf(node, sizeof node, "%s%s", checkout, NODE);
  snprintf(launcher, sizeof launcher, "%s%s", checkout, LAUNCHER);
  all[0] = "node";
  all[1] = launcher;
  for (size_t i = 1; i < count; i++) all[i + 1] = words[i];
  execv(node, all);
  /* The Node of the build was removed, or lies where this user cannot read. */
  execvp(all[0], all);
  say("cannot start Node: neither '", node, "' nor a 'node' on PATH can be run: ", strerror(errno), NULL);
  return FAILED;
}
