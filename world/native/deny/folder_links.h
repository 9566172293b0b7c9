/* Links in the place of folders with denied names. A person's link stays, recognised by its text: a switch of
   branches may remove and recreate the same link. */
#ifndef SUBSTRATE_DENY_FOLDER_LINKS_H
#define SUBSTRATE_DENY_FOLDER_LINKS_H

#include <stdbool.h>

/* True when the path is a link whose text no person's link had there. */
bool folder_link_is_new(const char *path);
/* Remembers a person's link. */
void folder_link_remember(const char *path);

#endif
