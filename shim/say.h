/* Messages for people on stderr. */
#ifndef SUBSTRATE_SHIM_SAY_H
#define SUBSTRATE_SHIM_SAY_H

/* Writes one line: "substrate: " and the parts up to NULL. Control and invisible characters are escaped as
   numbers: text of policies, commands and folders may contain terminal sequences. */
void say(const char *part, ...) __attribute__((sentinel));

#endif
