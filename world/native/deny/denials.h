/* Denied names in writable trees: masked or sealed in place, with the folders above pinned. */
#ifndef SUBSTRATE_DENY_DENIALS_H
#define SUBSTRATE_DENY_DENIALS_H

#include <stdbool.h>
#include <stddef.h>

/* Sources of mask mounts, placed by the mount plan (world/plan/kernel-folders.ts). */
#define MASKS "/dev/.denied"
#define MASK_FILE "/dev/.denied/file"
#define MASK_FOLDER "/dev/.denied/folder"

/* Opens the world's root and the masks. Call after the pivot. */
void denials_open(void);
/* Masks (DENY_READ) or seals (DENY_WRITE) the file at `path`. With `pins`, also pins the folders between
   `top` and `path` and remembers the name. False: the path is gone. Ends the world when the kernel
   refuses. */
bool denial_apply(const char *top, const char *path, unsigned denies, bool pins);
/* Seals the file at `path` and remembers the name, without pins: the folders above can still be moved. False:
   the path is gone, or the kernel refuses. */
bool denial_settle(const char *path, unsigned denies);
/* Renames a known seal to `path`, after a move of its folder. False: no known seal covers this file. */
bool denial_adopt(const char *path);
/* True when a mount covers the name: a mask or seal, wherever its folder was moved to. */
bool denial_holds(const char *path);

/* Pins a folder below `top` with the folders above, and makes the folder read-only for commands under every
   path. False: not a folder, already pinned, or the kernel refuses. */
bool denial_close(const char *top, const char *folder);
/* Makes a closed folder writable again; its pin stays. Ends the world when the kernel refuses. */
void denial_open_again(const char *folder);

/* True for a name that existed when denied. Only a process outside the world can replace such a name, because
   commands cannot rename or remove a mount point. */
bool denial_known(const char *path);
/* Returns an O_PATH descriptor of the file under a known seal, to reach the file past the seal. -1: not
   kept. */
int denial_under(const char *path);
/* Keeps the descriptor `under` for a known name, and closes the previous descriptor. */
void denial_keep_under(const char *path, int under);
/* True when the broker is asked about a command's replacement of `path`; denials_ask_of: of any path that
   ends in `leaf`. */
bool denial_asks(const char *path);
bool denials_ask_of(const char *leaf);
/* Seals the file behind an O_PATH descriptor. -1 with errno. */
int denial_seal(int place);
/* Opens a path below the world's root without following links (open_below). -1 with errno. */
int denial_open(const char *path, int flags);
/* Remembers a new sealed file, `place`, under its first name until the file stands where the broker is asked
   about replacements (denial_adopt). Takes the descriptor. */
void denial_expect(const char *path, int place);
/* True for such a first name. */
bool denial_expected(const char *path);
/* True when `holds` is true for every known name below a folder. */
bool denials_below(const char *folder, bool (*holds)(const char *path));
/* Returns the world's root, O_PATH. */
int denials_root(void);
/* Returns the largest number of descriptors kept under seals. */
size_t denials_descriptors(void);
/* Adds a name without a mount to the known names, and removes a known name. */
void denial_remember(const char *path);
void denial_forget(const char *path);
size_t denials_count(void);

#endif
