/* Links in the place of a folder of denied names. A person's stays, and is known by its text: it may be removed and made again, as a
   switch of branches does. */
#ifndef SUBSTRATE_DENY_FOLDER_LINKS_H
#define SUBSTRATE_DENY_FOLDER_LINKS_H

#include <stdbool.h>

/* Whether a link stands at this absolute path, and says what no person's said there. */
bool folder_link_is_new(const char *path);
/* It is a person's. */
void folder_link_remember(const char *path);

#endif
