/* The program `substrate-sh`: a shell for SHELL, make, npm and child processes. */
#ifndef SUBSTRATE_FRONT_SH_H
#define SUBSTRATE_FRONT_SH_H

/* Runs the words of sh(1) through the broker, or inside a world by that world's /bin/sh. Returns the exit code. */
int sh_run(char *const words[]);

#endif
