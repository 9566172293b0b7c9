/** Programs that trouble whoever is told of their writes. */

/** Makes FOLDER/a… while another thread swaps the text of the path for one that is refused. */
export const SWAP = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static char good[256], bad[256];
static char path[256];
static volatile int stop;
static void *swap(void *unused) {
  (void)unused;
  while (!stop) { memcpy(path, bad, sizeof path); memcpy(path, good, sizeof path); }
  return NULL;
}
int main(int count, char **words) {
  pthread_t thread;
  if (count != 3) return 2;
  snprintf(bad, sizeof bad, "%s", words[2]);
  snprintf(good, sizeof good, "%s/a", words[1]);
  memcpy(path, good, sizeof path);
  if (pthread_create(&thread, NULL, swap, NULL) != 0) return 3;
  for (int i = 0; i < 2000; i++) {
    int fd = open(path, O_WRONLY | O_CREAT, 0644);
    if (fd >= 0) close(fd);
    unlink(path);
  }
  stop = 1;
  pthread_join(thread, NULL);
  return 0;
}
`;

/** LISTENED PROGRAM…: runs it where somebody listens already, as below another sandbox. */
export const LISTENED = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char **words) {
  struct sock_filter allow[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
  struct sock_fprog program = {1, allow};
  if (count < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return 2;
  long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
  if (fd < 0 || fcntl((int)fd, F_SETFD, 0) < 0) return 3;
  execv(words[1], words + 1);
  return 4;
}
`;

/** FLOOD FOLDER THREADS EACH: that many threads make that many files each, all at once. */
export const FLOOD = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static const char *folder;
static long each;
static int failed;
static void *make(void *first) {
  char path[256];
  for (long i = 0; i < each; i++) {
    snprintf(path, sizeof path, "%s/%ld", folder, (long)first * each + i);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (fd < 0) failed = 1;
    else close(fd);
  }
  return NULL;
}
int main(int count, char **words) {
  static pthread_t threads[4096];
  pthread_attr_t small;
  if (count != 4) return 2;
  folder = words[1];
  long number = atol(words[2]);
  each = atol(words[3]);
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 65536);
  for (long i = 0; i < number; i++) if (pthread_create(&threads[i], &small, make, (void *)i) != 0) return 3;
  for (long i = 0; i < number; i++) pthread_join(threads[i], NULL);
  return failed;
}
`;

/** VANISH FOLDER ROUNDS: children that write without end, killed at any moment. */
export const VANISH = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words) {
  char path[256];
  if (count != 3) return 2;
  for (long round = 0; round < atol(words[2]); round++) {
    pid_t child = fork();
    if (child < 0) return 3;
    if (child == 0) {
      for (int i = 0;; i = (i + 1) % 20) {
        snprintf(path, sizeof path, "%s/%d", words[1], i);
        close(open(path, O_WRONLY | O_CREAT, 0644));
        unlink(path);
      }
    }
    usleep((unsigned)(round * 37 % 3000));
    kill(child, SIGKILL);
    if (waitpid(child, NULL, 0) != child) return 4;
  }
  return 0;
}
`;
