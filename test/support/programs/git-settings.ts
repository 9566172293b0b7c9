/** Programs that replace a repository's settings and cheat meanwhile. */

/**
 * `replace WAY ROUNDS FOLDER [NAME]`: renames config.lock with harmless content onto config, so often, while it tries to have evil content
 * there. NAME is another name than config.
 *
 * ROUNDS of 0: only cheats, for four seconds.
 *
 * - content: another process writes evil content into whatever config.lock is
 * - names: another process swaps config.lock for an evil file, and for a link to one
 * - writer: keeps what it renamed open, mapped and by a second name, and writes evil content to it afterwards
 * - opener: another process opens config and each new file of the hooks folder as early as it can, with O_PATH and for reading, and
 *   opens that anew for writing by /proc/self/fd; says how often it could write
 * - parent: another process renames the folders above
 */
export const REPLACE = `
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
static const char GOOD[] = "[core]\\n\\tbare = false\\n[user]\\n\\tname = good\\n#####################\\n";
static const char EVIL[] = "[core]\\n\\tbare = false\\n\\tpager = touch evil; :\\n";
static const char *folder, *leaf = "config";
static int *wrote;
static void put(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (fd < 0) return;
  if (write(fd, text, strlen(text)) < 0) {}
  close(fd);
}
static void again(int fd) {
  char name[64];
  if (fd < 0) return;
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  int file = open(name, O_WRONLY);
  if (file >= 0) {
    if (pwrite(file, EVIL, sizeof EVIL - 1, 0) > 0 && ftruncate(file, sizeof EVIL - 1) == 0) ++*wrote;
    close(file);
  }
  if (linkat(AT_FDCWD, name, AT_FDCWD, "second", AT_SYMLINK_FOLLOW) == 0) {
    put("second", EVIL);
    ++*wrote;
    unlink("second");
  }
}
static void cheat(const char *way) {
  char hooks[512];
  snprintf(hooks, sizeof hooks, "%s/hooks", folder);
  if (chdir("/proc/self/cwd") < 0) {}
  put("evil.config", EVIL);
  int kept[512], count = 0;
  for (unsigned round = 0;; round++) {
    char config[512], lock[512];
    snprintf(config, sizeof config, "%s/%s", folder, leaf);
    snprintf(lock, sizeof lock, "%s/%s.lock", folder, leaf);
    if (strcmp(way, "content") == 0) {
      int fd = open(lock, O_WRONLY);
      if (fd < 0) continue;
      if (pwrite(fd, EVIL, sizeof EVIL - 1, 0) < 0 || ftruncate(fd, sizeof EVIL - 1) < 0) {}
      close(fd);
    } else if (strcmp(way, "names") == 0) {
      unlink(lock);
      if (round % 2 == 0) { if (link("evil.config", lock) < 0) {} }
      else if (symlink("../evil.config", lock) < 0) {}
    } else if (strcmp(way, "parent") == 0) {
      rename(folder, "moved");
      rename("moved", folder);
    } else if (strcmp(way, "opener") == 0) {
      if (count == 512) while (count > 0) { again(kept[--count]); close(kept[count]); }
      kept[count++] = open(config, round % 2 == 0 ? O_PATH : O_RDONLY);
      again(kept[count - 1]);
      DIR *all = opendir(hooks);
      for (struct dirent *each; all != NULL && (each = readdir(all)) != NULL;) {
        if (strncmp(each->d_name, "substrate", 9) != 0 || count >= 510) continue;
        kept[count++] = openat(dirfd(all), each->d_name, O_PATH);
        again(kept[count - 1]);
      }
      if (all != NULL) closedir(all);
    }
  }
}
int main(int words, char **word) {
  char config[512], lock[512];
  if (words < 4) return 2;
  folder = word[3];
  if (words > 4) leaf = word[4];
  const char *way = word[1];
  wrote = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  snprintf(config, sizeof config, "%s/%s", folder, leaf);
  snprintf(lock, sizeof lock, "%s/%s.lock", folder, leaf);
  int done = 0;
  pid_t child = strcmp(way, "writer") == 0 ? 0 : fork();
  if (child == 0 && strcmp(way, "writer") != 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    cheat(way);
  }
  for (int i = 0; i < atoi(word[2]); i++) {
    unlink(lock);
    int fd = open(lock, O_RDWR | O_CREAT | O_EXCL, 0644);
    if (fd < 0) continue;
    if (write(fd, GOOD, sizeof GOOD - 1) < 0) return 2;
    char *map = mmap(NULL, sizeof GOOD, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (rename(lock, config) == 0) done++;
    if (strcmp(way, "writer") == 0) {
      char name[64];
      memcpy(map, EVIL, sizeof EVIL - 1);
      if (pwrite(fd, EVIL, sizeof EVIL - 1, 0) < 0) return 2;
      snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
      again(fd);
    }
    munmap(map, sizeof GOOD);
    close(fd);
  }
  if (atoi(word[2]) == 0) sleep(4);
  if (child > 0) { kill(child, SIGKILL); waitpid(child, NULL, 0); }
  printf("%d %d\\n", done > 0, strcmp(way, "writer") == 0 ? 0 : *wrote);
  return 0;
}
`;
