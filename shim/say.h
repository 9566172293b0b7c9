/* What a person reads on stderr. */
#ifndef SUBSTRATE_SHIM_SAY_H
#define SUBSTRATE_SHIM_SAY_H

/* One line: "substrate: ", and the parts up to a NULL. What comes from a policy, a command or a folder may hold what a terminal
   obeys, or what nobody sees: that is written as its number. */
void say(const char *part, ...) __attribute__((sentinel));

#endif
