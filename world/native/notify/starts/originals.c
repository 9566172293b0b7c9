#define _GNU_SOURCE
#include "notify/starts/originals.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/wildcards.h"

/* Delay until a program installed during the world's life is found. */
#define LOOK_AGAIN_MS 5000
/* Bytes compared at a time. */
#define PART (64 * 1024)

static const char *const FOLDERS[] = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin",
                                      "/bin",            "/usr/games",     "/usr/libexec", "/usr/lib/busybox"};

/* Dynamic loaders at their documented ABI paths, per C library (ld.so(8), musl's ld-musl). */
static const char *const LOADERS[] = {
    "/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
    "/lib/ld-linux-aarch64.so.1",  "/lib/ld-linux.so.2",        "/lib/ld-musl-x86_64.so.1",
    "/lib/ld-musl-aarch64.so.1",   "/usr/bin/ld.so"};

static void forget(struct originals *originals) {
  for (size_t i = 0; i < originals->count; i++) free(originals->list[i].path);
  originals->count = 0;
}

/* Adds a program. Without memory, copies of the program are not recognised by their bytes; its name still
   is. */
static void add(struct originals *originals, const char *path, bool loader) {
  struct stat stat_of;
  const char *name = strrchr(path, '/');
  if (stat(path, &stat_of) < 0 || !S_ISREG(stat_of.st_mode)) return;
  /* /bin and /usr/bin are the same folder on most systems. */
  for (size_t i = 0; i < originals->count; i++) {
    const struct original *original = &originals->list[i];
    bool same_file = original->inode == stat_of.st_ino && original->device == stat_of.st_dev;
    if (same_file && strcmp(strrchr(original->path, '/'), name) == 0) return;
  }
  if (originals->count == originals->room) {
    size_t room = originals->room == 0 ? 64 : 2 * originals->room;
    struct original *list = realloc(originals->list, room * sizeof *list);
    if (list == NULL) return;
    originals->list = list;
    originals->room = room;
  }
  char *copy = strdup(path);
  if (copy == NULL) return;
  originals->list[originals->count++] = (struct original){copy, stat_of.st_dev, stat_of.st_ino, stat_of.st_size, loader};
}

static void add_named(struct originals *originals, const char *folder, const char *name) {
  char path[PATH_MAX];
  int length = snprintf(path, sizeof path, "%s/%s", folder, name);
  if (length < (int)sizeof path) add(originals, path, false);
}

/* Adds each program in the folder that matches a pattern. */
static void add_matching(struct originals *originals, const char *folder, char *const *patterns, size_t count) {
  DIR *programs = count == 0 ? NULL : opendir(folder);
  if (programs == NULL) return;
  const struct dirent *entry;
  while ((entry = readdir(programs)) != NULL) {
    bool found = false;
    for (size_t i = 0; i < count && !found; i++) {
      found = strchr(patterns[i], '/') == NULL && wildcards_match(patterns[i], entry->d_name);
    }
    if (found) add_named(originals, folder, entry->d_name);
  }
  closedir(programs);
}

static void add_in(struct originals *originals, const char *folder, const struct wanted *wanted) {
  size_t plain = wanted->count - wanted->patterns;
  for (size_t i = 0; i < plain; i++) add_named(originals, folder, wanted->names[i]);
  add_matching(originals, folder, wanted->names + plain, wanted->patterns);
}

void originals_look(struct originals *originals, const struct wanted *wanted) {
  if (originals->looked != 0 && now_ms() - originals->looked < LOOK_AGAIN_MS) return;
  forget(originals);
  memset(originals->comparisons, 0, sizeof originals->comparisons);
  for (size_t i = 0; i < sizeof LOADERS / sizeof *LOADERS; i++) add(originals, LOADERS[i], true);
  for (size_t i = 0; i < sizeof FOLDERS / sizeof *FOLDERS; i++) add_in(originals, FOLDERS[i], wanted);
  for (size_t i = 0; i < wanted->folder_count; i++) add_in(originals, wanted->folders[i], wanted);
  originals->looked = now_ms();
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

/* Compares the bytes of both files. A file that cannot be opened by its path (its name was removed and
   another link is left, or the path is too long) counts as equal. */
static bool compare(const struct original *original, const struct image *image) {
  int one = image_open(image);
  if (one < 0) return true;
  int other = open(original->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  bool equal = other >= 0 && same_bytes(one, other, original->size);
  if (other >= 0) close(other);
  close(one);
  return equal;
}

/* Compares through the cache. Files without a name never come here: the gate asks about them anyway. */
static bool equals(struct originals *originals, uint32_t index, const struct image *image) {
  const struct stat *stat = &image->stat;
  for (size_t i = 0; i < COMPARISONS; i++) {
    const struct comparison *known = &originals->comparisons[i];
    if (known->inode == stat->st_ino && known->device == stat->st_dev && known->original == index &&
        memcmp(&known->changed, &stat->st_ctim, sizeof stat->st_ctim) == 0) {
      return known->equal;
    }
  }
  bool equal = compare(&originals->list[index], image);
  /* A file changed a moment ago may change again without a new ctime: do not cache. */
  if (image_is_settled(image)) {
    originals->comparisons[originals->next] = (struct comparison){stat->st_dev, stat->st_ino, stat->st_ctim, index, equal};
    originals->next = (originals->next + 1) % COMPARISONS;
  }
  return equal;
}

const struct original *originals_next(struct originals *originals, const struct image *image, size_t *at) {
  while (*at < originals->count) {
    size_t index = (*at)++;
    const struct original *original = &originals->list[index];
    if (original->device == image->stat.st_dev && original->inode == image->stat.st_ino) {
      /* In read-only program folders a file has several names on purpose, and its own name says which program
         runs. */
      if (image->writable || original->loader) return original;
      continue;
    }
    if (image->writable && original->size == image->stat.st_size && equals(originals, (uint32_t)index, image)) return original;
  }
  return NULL;
}

void originals_free(struct originals *originals) {
  forget(originals);
  free(originals->list);
  *originals = (struct originals){0};
}
