/* Where a path leads, as the kernel finds it inside the world. */
#ifndef SUBSTRATE_FILES_PLACE_H
#define SUBSTRATE_FILES_PLACE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "files/order.h"

#define MADE_MAX 64

/* A name in an open folder: links are followed once, so a folder swapped afterwards changes nothing. */
struct place {
  int folder; /* O_PATH; -1: none */
  char name[256];
  char path[4352]; /* for people */
};

/* Folders made on the way to new files, to be removed again if nothing is written. */
struct made {
  int count;
  struct place places[MADE_MAX];
};

/* Follows the links of a path. With `made`, missing folders are made. The last name may be missing. */
bool place_find(struct place *place, const char *path, struct made *made, struct fault *fault);
void place_close(struct place *place);
/* Opens a regular file for reading; never waits, and opens no pipe and no device. -1 with a fault. */
int place_read(const struct place *place, struct stat *status, struct fault *fault);
/* Reads a regular file of at most CONTENT_MAX bytes; the caller frees `data`. */
bool place_content(const struct place *place, struct stat *status, uint8_t **data, struct fault *fault);
bool is_binary(const uint8_t *data, size_t length);
void made_undo(struct made *made);

#endif
