/* Renames onto a sealed file that the broker may write, or to where such a file is missing (DENY_ASKS). PID 1 never lets such a call go on: it reads the new content
   once, asks the broker, which writes the host's file from what it was sent, and answers the call.

   The new file is sealed before any command can reach it. The broker makes it in a sealed folder beside the sealed file: there
   commands see it through a read-only mount alone. PID 1 goes past that mount (denial_under), seals the file where it is, and when
   the two files change names on the host (exchange.h), each takes its seal along: a mount stays on its directory entry, whatever
   name that gets. A seal put on afterwards would come too late: what was opened in between, even with O_PATH, is opened anew for writing by /proc/self/fd, past
   every mount that was put on top meanwhile. */
#ifndef SUBSTRATE_SEALS_REPLACEMENTS_H
#define SUBSTRATE_SEALS_REPLACEMENTS_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>

struct command;
struct frame;

/* A notice_handler. True: the call is such a rename, or the change of mode by which git finds out whether a file system keeps modes, and is answered
   here, at once or later. */
bool replacement_serve(int listener, const struct seccomp_notif *notice, struct command *command);
/* Keeps a call waiting for REPLACED. False: too many wait. */
bool replacement_wait(int listener, uint64_t token, const struct command *command);
/* SEAL: seals a new file where the broker made it, or looks whether a name is sealed, and tells. */
void replacement_seal(const struct frame *frame);
/* REPLACED: answers the call. One that comes too late is nothing. */
void replacement_answer(const struct frame *frame);
/* Refuses what waits for too long. Milliseconds until the next does, -1: none. */
int replacements_check_deadlines(void);
/* This listener is about to be closed, and nobody waits at it any more. */
void replacements_forget(int listener);

#endif
