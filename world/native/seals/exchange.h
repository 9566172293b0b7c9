/* `substrate-init exchange STAGED TARGET INODE SECONDS NANOSECONDS SIZE`, beside the broker, because Node has no renameat2(2).

   Puts STAGED, in the folder on descriptor 4, in the place of TARGET, in the folder on descriptor 3, and removes what stood there.
   The two change names: a plain rename would first take off the seal that a world has on TARGET, and only then take the name away
   from it, and in between a command could open the old file for writing while somebody on the host reads it. With INODE 0 nothing stands
   there, and STAGED is given that name. */
#ifndef SUBSTRATE_SEALS_EXCHANGE_H
#define SUBSTRATE_SEALS_EXCHANGE_H

/* What exchange_run returns, which is how the process exits. */
enum exchanged {
  EXCHANGED = 0,
  EXCHANGE_FAILED = 1, /* prints the number of the error */
  EXCHANGE_CHANGED = 3 /* TARGET was another file, or its content was: everything is as it was */
};

/* The words behind "exchange". INODE to SIZE are what stat(2) says of the TARGET that may be replaced. */
int exchange_run(int count, char **words);

#endif
