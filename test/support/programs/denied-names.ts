/** Programs that work against the guard of denied names. */

/** Twelve processes that make a file for ever, and one that kills: its parent, a pid, everything (-1), or nobody (0). */
export const MAKE_AND_KILL = `
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **words) {
  pid_t victim = strcmp(words[1], "parent") == 0 ? getppid() : atoi(words[1]);
  if (count != 3) return 2;
  for (int i = 0; i < 12; i++) {
    if (fork() != 0) continue;
    setsid();
    for (;;) close(open(words[2], O_CREAT | O_WRONLY, 0644));
  }
  usleep(3000);
  if (victim != 0) kill(victim, SIGKILL);
  for (;;) close(open(words[2], O_CREAT | O_WRONLY, 0644));
}
`;

/** Watches N folders of its own from as many instances as it gets, until the kernel has none left; then makes \`taken\`. */
export const TAKE_WATCHES = `
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int count, char **words) {
  int most = atoi(words[1]);
  char name[64];
  if (count != 2 || mkdir("/tmp/watched", 0755) < 0) return 2;
  for (int i = 0; i < most; i++) {
    snprintf(name, sizeof name, "/tmp/watched/%d", i);
    if (mkdir(name, 0755) < 0) return 2;
  }
  for (;;) {
    int instance = inotify_init();
    if (instance < 0) break;
    for (int i = 0; i < most; i++) {
      snprintf(name, sizeof name, "/tmp/watched/%d", i);
      if (inotify_add_watch(instance, name, IN_CREATE) >= 0) continue;
      if (errno != ENOSPC) return 2;
      printf("none left\\n");
      fflush(stdout);
      goto taken;
    }
  }
taken:
  close(open("taken", O_CREAT | O_WRONLY, 0644));
  sleep(60);
  return 0;
}
`;

/** Makes a name by one call: `make-by-call WAY NAME…`. */
export const MAKE_BY_CALL = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
int main(int argc, char **argv) {
  if (argc < 3) return 2;
  const char *way = argv[1], *name = argv[argc - 1];
  if (strcmp(way, "bind") == 0) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, name);
    return bind(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&address, sizeof address) < 0;
  }
  if (strcmp(way, "exchange") == 0) {
    close(open("beside", O_CREAT | O_WRONLY, 0644));
    rename("beside", name);
    return syscall(SYS_renameat2, AT_FDCWD, argv[2], AT_FDCWD, name, 2) < 0;
  }
  if (strcmp(way, "tmpfile") == 0) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", open(".", O_TMPFILE | O_WRONLY, 0644));
    return linkat(AT_FDCWD, path, AT_FDCWD, name, AT_SYMLINK_FOLLOW) < 0;
  }
  if (strcmp(way, "openat") == 0) return openat(open(argv[2], O_PATH), name, O_CREAT | O_WRONLY, 0644) < 0;
  if (strcmp(way, "undumpable") == 0) prctl(PR_SET_DUMPABLE, 0);
  return open(name, O_CREAT | O_WRONLY, 0644) < 0;
}
`;

/** Opens a path for ever while another thread changes what the path says: \`swap-names HARMLESS DENIED\`. */
export const SWAP_NAMES = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>
static char path[64];
static char **names;
static void *swap(void *unused) {
  for (unsigned i = 0;; i++) memcpy(path, names[i % 2], strlen(names[i % 2]) + 1);
  return unused;
}
int main(int argc, char **argv) {
  pthread_t thread;
  if (argc != 3) return 2;
  names = argv + 1;
  strcpy(path, names[0]);
  pthread_create(&thread, NULL, swap, NULL);
  for (;;) {
    int file = open(path, O_CREAT | O_WRONLY, 0644);
    if (file >= 0) close(file);
    unlink(names[0]);
  }
}
`;
