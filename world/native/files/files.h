/* `substrate-init file`: one file operation of an agent's own tools, with the rights of any command of its world. */
#ifndef SUBSTRATE_FILES_FILES_H
#define SUBSTRATE_FILES_FILES_H

/* Reads the order on standard input, writes the answer to standard output. Returns the exit code. */
int files_run(void);

#endif
