/* Paths below SUBSTRATE_HOME (broker/settings/home.ts). */
#ifndef SUBSTRATE_CLIENT_HOME_H
#define SUBSTRATE_CLIENT_HOME_H

#include <limits.h>
#include <stdbool.h>

/* Builds a path below SUBSTRATE_HOME (default: ~/.substrate); empty when too long. */
void home_path(char path[PATH_MAX], const char *below);
/* The agent's own socket. False without such a socket. */
bool home_own_socket(char path[PATH_MAX], const char *agent);
/* Whether a path leads to a socket. */
bool is_socket(const char *path);

#endif
