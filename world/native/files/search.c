#define _GNU_SOURCE
#include "files/search.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/globs.h"
#include "files/ignores.h"
#include "files/place.h"

#define DEPTH_MAX 128
/* Names looked at before a search ends as incomplete. */
#define SEEN_MAX 500000
/* Bytes of one shown line, and of all. */
#define LINE_MAX_SHOWN 500
#define SHOWN_MAX (1024U * 1024)

struct search {
  const struct order *order;
  /* `skipped`: a file is too large to be searched. */
  bool in_content, cut, skipped;
  regex_t regex;
  struct field_writer *answer;
  uint64_t found, seen;
  /* The path below the top of the repository, and where the part below the searched folder begins. */
  char path[PATH_MAX];
  size_t base;
  struct ignores *ignores;
};

static bool is_full(struct search *search) {
  if (search->found >= search->order->limit || search->answer->length > SHOWN_MAX || search->answer->full) search->cut = true;
  return search->cut;
}

/* A glob without a slash is for the name alone. */
static bool is_wanted(const struct search *search, const char *below) {
  const struct order *order = search->order;
  const char *slash = strrchr(below, '/');
  for (int i = 0; i < order->glob_count; i++) {
    bool by_name = strchr(order->globs[i], '/') == NULL;
    if (glob_matches(order->globs[i], by_name && slash != NULL ? slash + 1 : below)) return true;
  }
  return order->glob_count == 0;
}

static bool line_has(const struct search *search, const char *line, size_t length) {
  const struct order *order = search->order;
  if (order->flags & SEARCH_FIXED && !(order->flags & SEARCH_NO_CASE))
    return memmem(line, length, order->pattern, strlen(order->pattern)) != NULL;
  regmatch_t span = {.rm_so = 0, .rm_eo = (regoff_t)length};
  return regexec(&search->regex, line, 1, &span, REG_STARTEND) == 0;
}

static void show_line(struct search *search, const char *below, uint64_t number, const char *line, size_t length) {
  search->found++;
  field_put_string(search->answer, TAG_DONE_PATH, below);
  if (search->order->flags & SEARCH_NAMES) return;
  field_put_u64(search->answer, TAG_DONE_LINE, number);
  char shown[LINE_MAX_SHOWN + sizeof " [cut]"];
  if (length <= LINE_MAX_SHOWN) {
    field_put(search->answer, TAG_DONE_TEXT, line, length);
    return;
  }
  memcpy(shown, line, LINE_MAX_SHOWN);
  memcpy(shown + LINE_MAX_SHOWN, " [cut]", sizeof " [cut]");
  field_put_string(search->answer, TAG_DONE_TEXT, shown);
}

static void search_content(struct search *search, int folder, const char *name, const char *below) {
  struct place place = {.folder = folder};
  struct stat status;
  struct fault fault = {0};
  uint8_t *data = NULL;
  snprintf(place.name, sizeof place.name, "%s", name);
  if (!place_content(&place, &status, &data, &fault)) {
    /* Unreadable or replaced meanwhile, ignoring: grep goes on too. */
    if (strcmp(fault.word, "too_large") == 0) search->skipped = true;
    return;
  }
  size_t size = (size_t)status.st_size;
  const char *at = (const char *)data, *end = at + size;
  for (uint64_t number = 1; !is_binary(data, size) && at < end && !is_full(search); number++) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    if (stop == NULL) stop = end;
    if (line_has(search, at, (size_t)(stop - at))) {
      show_line(search, below, number, at, (size_t)(stop - at));
      if (search->order->flags & SEARCH_NAMES) break;
    }
    at = stop + 1;
  }
  free(data);
}

static void meet_file(struct search *search, int folder, const char *name, const char *below) {
  if (!is_wanted(search, below)) return;
  if (search->in_content) return search_content(search, folder, name, below);
  field_put_string(search->answer, TAG_DONE_PATH, below);
  search->found++;
}

static int by_name(const void *one, const void *other) {
  return strcmp(*(char *const *)one, *(char *const *)other);
}

/* The names in a folder, sorted. Takes `fd`. */
static size_t names_in(int fd, char ***names) {
  size_t count = 0, room = 0;
  DIR *folder = fdopendir(fd);
  *names = NULL;
  if (folder == NULL) {
    close(fd);
    return 0;
  }
  for (struct dirent *entry; count < SEEN_MAX && (entry = readdir(folder)) != NULL;) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if (count == room) {
      room = room == 0 ? 64 : 2 * room;
      *names = reallocarray(*names, room, sizeof(char *));
    }
    if (*names == NULL || ((*names)[count++] = strdup(entry->d_name)) == NULL) _exit(1);
  }
  closedir(folder);
  if (count > 0) qsort(*names, count, sizeof(char *), by_name);
  return count;
}

/* A new file that is not yet in its place (change.c). */
static bool is_temporary(const char *name) {
  return strncmp(name, ".substrate-", 11) == 0 && strlen(name) == 27 && strspn(name + 11, "0123456789abcdef") == 16;
}

static void walk(struct search *search, int folder, size_t length, int depth);

static void meet(struct search *search, int folder, const char *name, size_t length, int depth) {
  struct stat status;
  bool all = (search->order->flags & SEARCH_ALL) != 0;
  if (++search->seen > SEEN_MAX) search->cut = true;
  if (strcmp(name, ".git") == 0 || is_temporary(name) || length + strlen(name) + 2 > sizeof search->path) return;
  if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0) return;
  bool is_folder = S_ISDIR(status.st_mode);
  strcpy(search->path + length, name);
  if (!all && ignores_name(search->ignores, search->path, is_folder)) return;
  if (!is_folder) {
    bool counts = S_ISREG(status.st_mode) || (S_ISLNK(status.st_mode) && !search->in_content);
    if (counts) meet_file(search, folder, name, search->path + search->base);
    return;
  }
  int inner = depth < DEPTH_MAX ? openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
  if (inner < 0) return;
  strcat(search->path + length, "/");
  walk(search, inner, length + strlen(name) + 1, depth + 1);
}

/* Takes `folder`. `length`: of the folder's own path, with its slash. */
static void walk(struct search *search, int folder, size_t length, int depth) {
  char **names;
  int listed = fcntl(folder, F_DUPFD_CLOEXEC, 3);
  struct ignores *own = ignores_read(folder, strndupa(search->path, length), search->ignores);
  if (own != NULL) search->ignores = own;
  size_t count = listed < 0 ? 0 : names_in(listed, &names);
  for (size_t i = 0; i < count; i++) {
    if (!is_full(search)) meet(search, folder, names[i], length, depth);
    free(names[i]);
  }
  if (count > 0) free(names);
  if (own != NULL) search->ignores = ignores_free(own);
  close(folder);
}

/* Reads the ignore files above the searched folder, up to the folder with `.git`; sets the folder's path below that. */
static void enter_repository(struct search *search, int folder) {
  int above[DEPTH_MAX], count = 0, top = -1;
  char where[PATH_MAX], link[32];
  snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
  ssize_t length = readlink(link, where, sizeof where - 1);
  if (length <= 1) return;
  where[length] = 0;
  for (int at = fcntl(folder, F_DUPFD_CLOEXEC, 3); at >= 0 && count < DEPTH_MAX;) {
    above[count++] = at;
    if (faccessat(at, ".git", F_OK, AT_SYMLINK_NOFOLLOW) == 0) top = count - 1;
    if (top >= 0) break;
    at = openat(at, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat one, other;
    if (at >= 0 && fstat(at, &one) == 0 && fstat(above[count - 1], &other) == 0 && one.st_ino == other.st_ino) {
      close(at);
      at = -1;
    }
  }
  /* `top` folders lie between: their names are the last ones of the path. */
  const char *from = where + length;
  for (int i = 0; i < top; i++) {
    do from--;
    while (from > where && *from != '/');
  }
  if (top > 0 && snprintf(search->path, sizeof search->path, "%s/", from + 1) > 0) {
    const char *rest = search->path;
    for (int i = top; i > 0; i--) {
      size_t done = (size_t)(rest - search->path);
      struct ignores *own = ignores_read(above[i], strndupa(search->path, done), search->ignores);
      if (own != NULL) search->ignores = own;
      rest = strchr(rest, '/') + 1;
    }
    search->base = strlen(search->path);
  }
  while (count > 0) close(above[--count]);
}

static bool compile(struct search *search, struct fault *fault) {
  const struct order *order = search->order;
  int flags = REG_EXTENDED | REG_NEWLINE | (order->flags & SEARCH_NO_CASE ? REG_ICASE : 0);
  if (!search->in_content || (order->flags & SEARCH_FIXED && !(order->flags & SEARCH_NO_CASE))) return true;
  int error = regcomp(&search->regex, order->pattern, flags);
  if (error == 0) return true;
  fault_at(fault, "pattern", 0, "");
  regerror(error, &search->regex, fault->path, sizeof fault->path);
  return false;
}

bool search_files(const struct order *order, bool in_content, struct field_writer *answer, struct fault *fault) {
  static struct search search;
  struct stat status;
  search = (struct search){.order = order, .in_content = in_content, .answer = answer};
  if (!compile(&search, fault)) return false;
  int folder = open(order->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    enter_repository(&search, folder);
    walk(&search, folder, search.base, 0);
  } else if (errno == ENOTDIR && in_content && stat(order->path, &status) == 0) {
    struct place place;
    if (!place_find(&place, order->path, NULL, fault)) return false;
    int fd = place_read(&place, &status, fault);
    if (fd < 0) return false;
    close(fd);
    search_content(&search, place.folder, place.name, order->path);
    place_close(&place);
  } else {
    return fault_at(fault, "errno", errno, order->path);
  }
  if (search.cut || search.skipped) field_put_u64(answer, TAG_DONE_CUT, 1);
  return true;
}
