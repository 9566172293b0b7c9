/* The keeper: a second copy of the world's mounts, below its root, where no name leads.

   A command in a mount namespace of its own may detach the copy of the world's mounts that it began with, as
   bubblewrap does. A mount point then no longer counts as one for that namespace (is_local_mountpoint), and the
   names that the mounts hide, seal and pin could be renamed: a hidden file would be moved to a folder bound
   elsewhere, and be read there. The keeper has a mount on each of these names too, and stays in every mount
   namespace: pivot_root(2) gives each new root the lock of the old one (MNT_LOCKED), so nothing ever uncovers the
   keeper. */
#ifndef SUBSTRATE_MOUNT_KEEPER_H
#define SUBSTRATE_MOUNT_KEEPER_H

/* Puts the keeper below the world at /newroot of the staging root, and makes the world this process's root. Later
   mounts and unmounts in the world happen in the keeper too. */
void keeper_place(void);

#endif
