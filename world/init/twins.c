#define _GNU_SOURCE
#include "twins.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "stars.h"

/* A program that is installed while a world lives is found after that long. */
#define LOOK_AGAIN_MS 5000
/* Bytes that are compared at a time. */
#define PART (64 * 1024)

static const char *const FOLDERS[] = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin",
                                      "/bin",            "/usr/games",     "/usr/libexec", "/usr/lib/busybox"};

/* The loaders that the ABI documents of each C library name (ld.so(8), musl's ld-musl). */
static const char *const LOADERS[] = {
    "/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
    "/lib/ld-linux-aarch64.so.1",  "/lib/ld-linux.so.2",        "/lib/ld-musl-x86_64.so.1",
    "/lib/ld-musl-aarch64.so.1",   "/usr/bin/ld.so"};

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void forget(struct twins *twins) {
  for (size_t i = 0; i < twins->count; i++) free(twins->list[i].path);
  twins->count = 0;
}

/* One that finds no room is not found by its bytes; by its name it is all the same. */
static void add(struct twins *twins, const char *path, bool loader) {
  struct stat stat_of;
  const char *name = strrchr(path, '/');
  if (stat(path, &stat_of) < 0 || !S_ISREG(stat_of.st_mode)) return;
  /* /bin and /usr/bin are one folder on most systems. */
  for (size_t i = 0; i < twins->count; i++) {
    const struct twin *twin = &twins->list[i];
    bool same_file = twin->inode == stat_of.st_ino && twin->device == stat_of.st_dev;
    if (same_file && strcmp(strrchr(twin->path, '/'), name) == 0) return;
  }
  if (twins->count == twins->room) {
    size_t room = twins->room == 0 ? 64 : 2 * twins->room;
    struct twin *list = realloc(twins->list, room * sizeof *list);
    if (list == NULL) return;
    twins->list = list;
    twins->room = room;
  }
  char *copy = strdup(path);
  if (copy == NULL) return;
  twins->list[twins->count++] = (struct twin){copy, stat_of.st_dev, stat_of.st_ino, stat_of.st_size, loader};
}

static void add_named(struct twins *twins, const char *folder, const char *name) {
  char path[PATH_MAX];
  int length = snprintf(path, sizeof path, "%s/%s", folder, name);
  if (length < (int)sizeof path) add(twins, path, false);
}

/* Each program in the folder that one of these patterns is about. */
static void add_matching(struct twins *twins, const char *folder, char *const *patterns, size_t count) {
  DIR *programs = count == 0 ? NULL : opendir(folder);
  if (programs == NULL) return;
  const struct dirent *entry;
  while ((entry = readdir(programs)) != NULL) {
    bool found = false;
    for (size_t i = 0; i < count && !found; i++) {
      found = strchr(patterns[i], '/') == NULL && stars_match(patterns[i], entry->d_name);
    }
    if (found) add_named(twins, folder, entry->d_name);
  }
  closedir(programs);
}

static void add_in(struct twins *twins, const char *folder, const struct wanted *wanted) {
  size_t plain = wanted->count - wanted->patterns;
  for (size_t i = 0; i < plain; i++) add_named(twins, folder, wanted->names[i]);
  add_matching(twins, folder, wanted->names + plain, wanted->patterns);
}

void twins_look(struct twins *twins, const struct wanted *wanted) {
  if (twins->looked != 0 && now_ms() - twins->looked < LOOK_AGAIN_MS) return;
  forget(twins);
  memset(twins->verdicts, 0, sizeof twins->verdicts);
  for (size_t i = 0; i < sizeof LOADERS / sizeof *LOADERS; i++) add(twins, LOADERS[i], true);
  for (size_t i = 0; i < sizeof FOLDERS / sizeof *FOLDERS; i++) add_in(twins, FOLDERS[i], wanted);
  for (size_t i = 0; i < wanted->folder_count; i++) add_in(twins, wanted->folders[i], wanted);
  twins->looked = now_ms();
}

static bool same_bytes(int one, int other, off_t size) {
  static uint8_t parts[2][PART];
  off_t at = 0;
  while (at < size) {
    ssize_t got = pread(one, parts[0], PART, at);
    if (got <= 0 || pread(other, parts[1], (size_t)got, at) != got) return false;
    if (memcmp(parts[0], parts[1], (size_t)got) != 0) return false;
    at += got;
  }
  return true;
}

/* One that its path does not lead to (its name was removed and it has another one, or the path is too long) is what it may be. */
static bool compare(const struct twin *twin, const struct image *image) {
  int one = image_open(image);
  if (one < 0) return true;
  int other = open(twin->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  bool equal = other >= 0 && same_bytes(one, other, twin->size);
  if (other >= 0) close(other);
  close(one);
  return equal;
}

/* A file without a name is compared by nobody: it is asked about for that alone. */
static bool equals(struct twins *twins, uint32_t index, const struct image *image) {
  const struct stat *stat = &image->stat;
  for (size_t i = 0; i < VERDICTS; i++) {
    const struct verdict *known = &twins->verdicts[i];
    if (known->inode == stat->st_ino && known->device == stat->st_dev && known->twin == index &&
        memcmp(&known->changed, &stat->st_ctim, sizeof stat->st_ctim) == 0) {
      return known->equal;
    }
  }
  bool equal = compare(&twins->list[index], image);
  /* What changed a moment ago may change again without another ctime. */
  if (image_is_settled(image)) {
    twins->verdicts[twins->next] = (struct verdict){stat->st_dev, stat->st_ino, stat->st_ctim, index, equal};
    twins->next = (twins->next + 1) % VERDICTS;
  }
  return equal;
}

const struct twin *twins_next(struct twins *twins, const struct image *image, size_t *at) {
  while (*at < twins->count) {
    size_t index = (*at)++;
    const struct twin *twin = &twins->list[index];
    if (twin->device == image->stat.st_dev && twin->inode == image->stat.st_ino) {
      /* Where programs are kept, one file has several names on purpose: there its own name says what it is. */
      if (image->writable || twin->loader) return twin;
      continue;
    }
    if (image->writable && twin->size == image->stat.st_size && equals(twins, (uint32_t)index, image)) return twin;
  }
  return NULL;
}

void twins_free(struct twins *twins) {
  forget(twins);
  free(twins->list);
  *twins = (struct twins){0};
}
