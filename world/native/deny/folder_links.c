#define _GNU_SOURCE
#include "deny/folder_links.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "deny/denials.h"
#include "lib/failure.h"

/* Linear list: a project has a few links. */
struct link {
  struct link *next;
  const char *text;
  char path[];
};

static struct link *links;

static bool read_text(const char *path, char text[PATH_MAX]) {
  int link = denial_open(path, O_PATH | O_NOFOLLOW);
  if (link < 0) return false;
  /* ENOENT for anything but a link. */
  ssize_t length = readlinkat(link, "", text, PATH_MAX - 1);
  close(link);
  if (length < 0) return false;
  text[length] = 0;
  return true;
}

static bool is_persons(const char *path, const char *text) {
  for (const struct link *each = links; each != NULL; each = each->next) {
    if (strcmp(each->path, path) == 0 && strcmp(each->text, text) == 0) return true;
  }
  return false;
}

bool folder_link_is_new(const char *path) {
  char text[PATH_MAX];
  return read_text(path, text) && !is_persons(path, text);
}

void folder_link_remember(const char *path) {
  char text[PATH_MAX];
  if (!read_text(path, text) || is_persons(path, text)) return;
  size_t path_size = strlen(path) + 1;
  struct link *link = malloc(sizeof *link + path_size + strlen(text) + 1);
  if (link == NULL) fail_world("denied names", path, ENOMEM);
  memcpy(link->path, path, path_size);
  link->text = strcpy(link->path + path_size, text);
  link->next = links;
  links = link;
}
