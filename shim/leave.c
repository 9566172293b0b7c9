#define _GNU_SOURCE
#include "leave.h"

#include <stdlib.h>
#include <string.h>

/* Same values as in world/model/telemetry.ts. */
#define LIBRARY "/run/substrate-preload.so"
#define LIST "LD_PRELOAD"
#define ADDRESS "SUBSTRATE_TELEMETRY"

/* Removes LIBRARY from a list separated by blanks and colons (ld.so(8)). In place: the result is never
   longer. */
static void take_out(char *list) {
  char *to = list;
  for (const char *at = list; *at != 0;) {
    size_t length = strcspn(at, " :");
    if (length > 0 && !(length == strlen(LIBRARY) && memcmp(at, LIBRARY, length) == 0)) {
      if (to > list) *to++ = ':';
      memmove(to, at, length);
      to += length;
    }
    at += length + (at[length] != 0);
  }
  *to = 0;
}

void leave_world(void) {
  char *list = getenv(LIST);
  unsetenv(ADDRESS);
  if (list == NULL || strstr(list, LIBRARY) == NULL) return;
  take_out(list);
  if (*list == 0) unsetenv(LIST);
}
