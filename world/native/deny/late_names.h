/* Denied names that a command may have made: told to the broker, which takes them out, when that command ends.
   Earlier would break what makes such a name on its way to something else (`git init` copies hooks). */
#ifndef SUBSTRATE_DENY_LATE_NAMES_H
#define SUBSTRATE_DENY_LATE_NAMES_H

#include <stdbool.h>

/* A command whose end was not told yet is running. */
bool late_commands_run(void);
/* For later. False: there are too many already, so it was told at once. */
bool late_name_add(const char *path, unsigned denies);
/* Tells of one now. */
void late_name_tell(const char *path, unsigned denies);
/* Tells of all. */
void late_names_tell(void);

#endif
