#define _GNU_SOURCE
#include "caller.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../client/home.h"
#include "../client/variables.h"

/* Who calls, when nobody says otherwise. */
#define PERSON "human"

/* Whether a path is absolute and without `.` and `..`, which Node resolves as text and the kernel behind links. */
static bool is_plain(const char *path) {
  if (path == NULL || path[0] != '/') return false;
  for (const char *at = path; at != NULL; at = strchr(at + 1, '/')) {
    size_t length = strcspn(at + 1, "/");
    if ((length == 1 || length == 2) && strspn(at + 1, ".") == length) return false;
  }
  return true;
}

/* Whether config.yaml names agents, for one of which `--agent` may be misspelt. */
static bool has_agents(void) {
  char path[PATH_MAX];
  home_path(path, "sock/agents");
  DIR *folder = opendir(path);
  bool found = false;
  for (const struct dirent *entry; folder != NULL && !found && (entry = readdir(folder)) != NULL;) found = entry->d_name[0] != '.';
  if (folder != NULL) closedir(folder);
  return found;
}

/* A person's command goes to the operator's socket: a folder that a person works in is a project. */
static void choose_socket(struct caller *caller) {
  if (home_own_socket(caller->socket, caller->agent)) return;
  home_path(caller->socket, "sock/control.sock");
  if (strcmp(caller->agent, PERSON) == 0 && is_socket(caller->socket)) return;
  home_path(caller->socket, "sock/agent.sock");
}

bool caller_read(struct caller *caller, const struct options *options) {
  const char *root = variable("SUBSTRATE_HOME");
  if (!is_plain(root == NULL ? getenv("HOME") : root) || getcwd(caller->cwd, sizeof caller->cwd) == NULL) return false;
  if (caller->cwd[0] != '/') return false;
  if (options->agent != NULL) {
    /* An agent with a socket stands in config.yaml. Node compares other names with config.yaml. */
    caller->agent = options->agent;
    if (home_own_socket(caller->socket, options->agent)) return true;
    choose_socket(caller);
    return !has_agents();
  }
  caller->agent = variable("SUBSTRATE_AGENT_ID");
  if (caller->agent == NULL) caller->agent = PERSON;
  choose_socket(caller);
  return true;
}
