/* What `exec --keep` leaves behind. */
#ifndef SUBSTRATE_FRONT_KEEP_H
#define SUBSTRATE_FRONT_KEEP_H

/* Says how many processes go on running in a world, as api/cli/commands/exec.ts. */
void keep_say(const char *world, const char *agent);

#endif
