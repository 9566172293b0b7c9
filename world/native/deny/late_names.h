/* Denied names that a command may have made: reported to the broker when the command ends, for quarantine.
   Earlier would break tools with such names as intermediate steps (`git init` copies hooks). */
#ifndef SUBSTRATE_DENY_LATE_NAMES_H
#define SUBSTRATE_DENY_LATE_NAMES_H

#include <stdbool.h>

/* True while a command runs whose end was not reported. */
bool late_commands_run(void);
/* Queues a name. False: the queue is full, and the name was reported at once. */
bool late_name_add(const char *path, unsigned denies);
/* Reports a name now. */
void late_name_tell(const char *path, unsigned denies);
/* Reports all queued names. */
void late_names_tell(void);
/* From here on names are renamed in their own folder instead of reported: the broker is gone. */
void late_names_be_alone(void);
bool late_names_alone(void);

#endif
