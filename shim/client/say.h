/* Messages for people on stderr. */
#ifndef SUBSTRATE_CLIENT_SAY_H
#define SUBSTRATE_CLIENT_SAY_H

/* Writes one line: "substrate: " and the parts up to NULL. Control and invisible characters are escaped as
   numbers: text of policies, commands and folders may contain terminal sequences. */
void say(const char *part, ...) __attribute__((sentinel));
/* Writes a message and below it, indented, what to do next; NULL for nothing. */
void say_with_hint(const char *message, const char *hint);

struct buffer;
/* Adds text as say() shows it. Line ends are escaped too. */
void add_shown(struct buffer *to, const char *text);

#endif
