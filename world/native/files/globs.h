/* Path patterns of glob and .gitignore: `*` and `?` stay in a name, `**` as a whole name is any number of folders. Pure. */
#ifndef SUBSTRATE_FILES_GLOBS_H
#define SUBSTRATE_FILES_GLOBS_H

#include <stdbool.h>

bool glob_matches(const char *pattern, const char *path);

#endif
