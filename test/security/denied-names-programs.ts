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
