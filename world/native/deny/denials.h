/* Denied names inside what may be written: masked or sealed in place, and the folders above them pinned. */
#ifndef SUBSTRATE_DENY_DENIALS_H
#define SUBSTRATE_DENY_DENIALS_H

#include <stdbool.h>
#include <stddef.h>

/* Where the mount plan leaves what masks are made of (world/plan/kernel-folders.ts). */
#define MASK_FILE "/dev/.denied/file"
#define MASK_FOLDER "/dev/.denied/folder"

/* After the pivot: the world is our root from here on. */
void denials_open(void);
/* Masks (DENY_READ) or seals (DENY_WRITE) what stands at `path`, and pins the folders between `top` and it and
   knows the name from then on, unless `pins` is false. False: nothing stands there any more. Ends the world when the kernel refuses. */
bool denial_apply(const char *top, const char *path, unsigned denies, bool pins);
/* Seals what stands at `path` and knows the name from then on, without a pin: the folders above it can be moved. False: nothing stands
   there any more, or the kernel refuses. */
bool denial_settle(const char *path, unsigned denies);
/* The seal on `path` is known under another name, of which its folder was moved: it is known under this one from then on. False: it
   is not. */
bool denial_adopt(const char *path);
/* True when a mount is on the name: one of ours, wherever its folder was moved to. */
bool denial_holds(const char *path);

/* Pins a folder below `top` and the folders above it, and keeps commands from writing in it by any path that they find from now on. False:
   it is no folder, it is pinned already, or the kernel refuses. */
bool denial_close(const char *top, const char *folder);
/* Only pinned again. Ends the world when the kernel refuses. */
void denial_open_again(const char *folder);

/* Names that were there when they were denied: who replaces one of them is not inside, where it cannot be moved. */
bool denial_known(const char *path);
/* What the seal of such a name lies on, O_PATH: through it the name is reached past the seal. -1: none is kept. */
int denial_under(const char *path);
/* Keeps the descriptor `under` for it, and closes the one before. */
void denial_keep_under(const char *path, int under);
/* Whether the broker is asked about what a command would put in its place; and whether it is about any path that ends so. */
bool denial_asks(const char *path);
bool denials_ask_of(const char *leaf);
/* Puts a seal on what an O_PATH descriptor names. -1 with errno. */
int denial_seal(int place);
/* Opens what is below the world's root, following no link (open_below). -1 with errno. */
int denial_open(const char *path, int flags);
/* A new sealed file, `place`, which is known by the name that it was made with until it stands where the broker is to be asked about it
   (denial_adopt). Takes the descriptor. */
void denial_expect(const char *path, int place);
/* Whether `holds` is true of each known name below a folder. */
bool denials_below(const char *folder, bool (*holds)(const char *path));
/* The root of the world, O_PATH. */
int denials_root(void);
/* Descriptors that are kept at most. */
size_t denials_descriptors(void);
/* The same of a name that nothing is mounted on. */
void denial_remember(const char *path);
void denial_forget(const char *path);
size_t denials_count(void);

#endif
