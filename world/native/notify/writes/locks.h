/* Lock files of sealed settings, such as `.git/config.lock`: the new settings, until git renames them. A person's git makes
   such files as commands' git does, and whoever writes, holds open or replaces one writes what the host's git reads next.
   So commands change no lock file but those that PID 1 made for them: PID 1 carries these calls out itself, and knows each
   file by its inode. Git's own calls (O_EXCL, rename, unlink) work as before. */
#ifndef SUBSTRATE_NOTIFY_WRITES_LOCKS_H
#define SUBSTRATE_NOTIFY_WRITES_LOCKS_H

#include <linux/seccomp.h>
#include <stdbool.h>

#include "notify/writes/lookups.h"

enum lock_answer {
  LOCK_NONE,    /* no lock file, or a call that harms none: not answered */
  LOCK_DONE,    /* carried out and answered */
  LOCK_REFUSED, /* answered; `refused` of one place is set where the person should be told */
};

/* Answers a call whose names were looked up. */
enum lock_answer lock_serve(int listener, const struct seccomp_notif *notice, struct lookup *places, int count);
/* True for a lock file that PID 1 made for a command of this world. */
bool lock_is_own(int folder, const char *leaf);
/* Removes such a file, and no other. */
int lock_remove(int folder, const char *leaf);

#endif
