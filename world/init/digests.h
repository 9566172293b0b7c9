/* `substrate-init digests ROOT`: what the files below a folder hold, for whoever lists their names on standard input. */
#ifndef SUBSTRATE_DIGESTS_H
#define SUBSTRATE_DIGESTS_H

/* Names relative to `root`, each with its NUL, to the end of the input. For each a line: the digest of a file's bytes or of a
   link's target, `-` for all else, `?` when it cannot be read. */
_Noreturn void digests_run(const char *root);

#endif
