/* The folder that the last name stood in: mostly it is the next one's, and then it costs one look to know that it still is. */
#ifndef SUBSTRATE_LAST_FOLDER_H
#define SUBSTRATE_LAST_FOLDER_H

#include <limits.h>

#include "callers.h"

/* As `callers_part`, and then `callers_settle`, whose fault `settled` tells apart. For `last_folder_close` alone to be closed, and
   not to be kept over the next one. */
int last_folder_part(const struct view *view, char *text, const char **leaf, char real[PATH_MAX + 1], bool *settled);
/* Closes a folder of the caller's, unless it stays the last one. */
void last_folder_close(int fd);
/* Nobody calls for now: nothing stays open. */
void last_folder_forget(void);

#endif
