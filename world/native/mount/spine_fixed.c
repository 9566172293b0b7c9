#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/failure.h"
#include "mount/spine.h"

#define STEP "spine"

/* Another mount point of this namespace: whose child lies at it, or above it? */
static void fix_below(const char *point) {
  for (struct spine *spine = spine_after(NULL); spine != NULL; spine = spine_after(spine)) {
    size_t length = strlen(spine->path);
    if (strncmp(point, spine->path, length) != 0 || point[length] != '/') continue;
    size_t name_length = strcspn(point + length + 1, "/");
    for (struct child *child = spine->children; child != NULL; child = child->next) {
      if (strlen(child->name) != name_length || strncmp(child->name, point + length + 1, name_length) != 0) continue;
      bool below = point[length + 1 + name_length] == '/';
      /* The child's own mount is the first one at its point. */
      if (below || child->seen) child->fixed = true;
      child->seen = true;
    }
  }
}

static void unescape(char *text) {
  char *out = text;
  for (const char *in = text; *in != 0; in++) {
    unsigned code;
    if (in[0] == '\\' && sscanf(in + 1, "%3o", &code) == 1) {
      *out++ = (char)code;
      in += 3;
    } else *out++ = *in;
  }
  *out = 0;
}

void spines_fix(void) {
  FILE *table = fopen("/proc/self/mountinfo", "re");
  char *line = NULL;
  size_t room = 0;
  if (table == NULL) fail_world(STEP, "/proc/self/mountinfo", errno);
  while (getline(&line, &room, table) > 0) {
    char *state, *field = strtok_r(line, " ", &state);
    for (int i = 1; i < 5 && field != NULL; i++) field = strtok_r(NULL, " ", &state);
    if (field == NULL) continue;
    unescape(field);
    fix_below(field);
  }
  free(line);
  fclose(table);
  for (struct spine *spine = spine_after(NULL); spine != NULL; spine = spine_after(spine)) {
    for (struct child *child = spine->children; child != NULL; child = child->next) child->seen = false;
  }
}
