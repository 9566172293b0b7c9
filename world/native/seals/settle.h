/* Git folders that commands made. While such a command runs nothing in them is sealed: it must get settings and samples of hooks.
   The broker judges them when the command ends; where processes live on after that (background: keep, or other commands), they are
   settled first: sealed as those that stood before are, so that what is judged stays as it is.

   A seal is a mount, and stops who comes by the name. Who stands in the folder of hooks by then, or has the settings open, is past
   it. So each of these files and folders is replaced by a copy, which is sealed before anybody can have opened it: meanwhile the
   folder around it has no permissions, and no call that could give them back is let go on (PID 1 does nothing else).

   Where no process of this world is left, nobody can have anything open: then what stands is sealed as it is. The git folder may be one
   that a person, or a command of another world, is still making. */
#ifndef SUBSTRATE_SEALS_SETTLE_H
#define SUBSTRATE_SEALS_SETTLE_H

struct frame;

/* SETTLE: seals those that it names, and all when no command runs; tells with SETTLED what is sealed and what could not be. */
void new_repositories_settle(const struct frame *frame);

#endif
