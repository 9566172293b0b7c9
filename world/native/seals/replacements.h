/* Renames onto a sealed file that the broker may write, or onto a missing file of this kind (DENY_ASKS). PID
   1 never lets such a call go on: PID 1 reads the new content once and asks the broker, which writes the
   received content to the host's file and answers the call.
   The new file is sealed before any command can reach it. The broker creates the file in a sealed folder
   beside the sealed file, visible to commands only through a read-only mount. PID 1 goes past that mount
   (denial_under) and seals the new file in place. When both files exchange names on the host (exchange.h),
   each keeps its seal: a mount stays on its directory entry, whatever the new name.
   A later seal would come too late: a file opened in between, even with O_PATH, can be reopened for writing
   through /proc/self/fd, past every mount put on top meanwhile. */
#ifndef SUBSTRATE_SEALS_REPLACEMENTS_H
#define SUBSTRATE_SEALS_REPLACEMENTS_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>

struct command;
struct frame;

/* A notice_handler. True: the call is such a rename, or the chmod by which git tests whether a file system
   keeps modes, and is answered here, at once or later. */
bool replacement_serve(int listener, const struct seccomp_notif *notice, struct command *command);
/* Keeps a call waiting for REPLACED. False: too many calls wait. */
bool replacement_wait(int listener, uint64_t token, const struct command *command);
/* Takes a SEAL frame: seals a new file of the broker in place, or checks whether a name is sealed, and
   reports the result. */
void replacement_seal(const struct frame *frame);
/* Takes a REPLACED frame and answers the call. A late answer is ignored. */
void replacement_answer(const struct frame *frame);
/* Refuses calls past their deadline. Returns milliseconds until the next deadline, -1: nothing waits. */
int replacements_check_deadlines(void);
/* Drops the calls of a listener that is about to be closed; no process waits there. */
void replacements_forget(int listener);

#endif
