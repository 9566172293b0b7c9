/* Seals git folders that commands made. While such a command runs, nothing inside is sealed: git must get its
   settings and sample hooks. The broker judges the folders when the command ends. If processes live on
   (background: keep, or other commands), PID 1 first seals the folders as it seals pre-existing git folders,
   so that the judged content stays.
   A seal is a mount and only stops access by name. A process with the hooks folder as working directory, or
   with the settings open, is past the seal. So PID 1 replaces each such file and folder by a copy, sealed
   before any process can open the copy: meanwhile the surrounding folder has no permissions, and no call that
   could restore permissions is let go on (PID 1 does nothing else).
   Without surviving processes in this world no file can be open, and PID 1 seals the existing files as found.
   The git folder may then be in the making by a person or by a command of another world. */
#ifndef SUBSTRATE_SEALS_SETTLE_H
#define SUBSTRATE_SEALS_SETTLE_H

struct frame;

/* Takes a SETTLE frame: seals the named folders, and all folders when no command runs. Reports the sealed
   names and the failures in SETTLED. */
void new_repositories_settle(const struct frame *frame);

#endif
