/* `substrate-init exchange STAGED TARGET INODE SECONDS NANOSECONDS SIZE`, run beside the broker, because Node
   has no renameat2(2). Puts STAGED, in the folder on descriptor 4, in the place of TARGET, in the folder on
   descriptor 3, and removes the old TARGET. The files exchange their names: a plain rename would first detach
   a world's seal from TARGET and only then remove the name, and in between a command could open the old file
   for writing while a program on the host reads the file. With INODE 0, TARGET is missing, and STAGED gets
   its name. */
#ifndef SUBSTRATE_SEALS_EXCHANGE_H
#define SUBSTRATE_SEALS_EXCHANGE_H

/* Return value of exchange_run and exit status of the process. */
enum exchanged {
  EXCHANGED = 0,
  EXCHANGE_FAILED = 1, /* prints the errno */
  EXCHANGE_CHANGED = 3 /* TARGET is another file or has other content: nothing has changed */
};

/* Takes the words after "exchange". INODE to SIZE come from stat(2) of the expected TARGET. */
int exchange_run(int count, char **words);

#endif
