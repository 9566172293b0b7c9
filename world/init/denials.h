/* Denied names inside what may be written: masked or sealed in place, and the folders above them pinned. */
#ifndef SUBSTRATE_DENIALS_H
#define SUBSTRATE_DENIALS_H

#include <stdbool.h>
#include <stddef.h>

/* Where the mount plan leaves what masks are made of (world/plan/kernel-folders.ts). */
#define MASK_FILE "/dev/.denied/file"
#define MASK_FOLDER "/dev/.denied/folder"

/* After the pivot: the world is our root from here on. */
void denials_open(void);
/* Masks (DENY_READ) or seals (DENY_WRITE) what stands at `path`, and pins the folders between `zone` and it and
   knows the name from then on, unless `pins` is false. False: nothing stands there any more. Ends the world when the kernel refuses. */
bool denial_apply(const char *zone, const char *path, unsigned denies, bool pins);
/* True when a mount is on the name: one of ours, wherever its folder was moved to. */
bool denial_holds(const char *path);

/* Names that were there when they were denied: who replaces one of them is not inside, where it cannot be moved. */
bool denial_known(const char *path);
/* The same of a name that nothing is mounted on. */
void denial_remember(const char *path);
void denial_forget(const char *path);
size_t denials_count(void);

#endif
