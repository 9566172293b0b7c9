/** A small server and clients of Unix sockets, in C, for the host's side and for inside. */
import type { ChildProcess } from "node:child_process";
import { type Actor, spawnAs } from "../users/users.ts";

/**
 * `listen TYPE NAME [netns]`: binds, says `up`, and `came` for each connection or datagram. `dial TYPE NAME HOW`: `ok` or the
 * error number. `at TYPE FD NAME`: connects to NAME below the folder that is open as FD, through /proc/self/fd. `race NAME MS`: connects
 * while other threads put another address, and another socket, in the place of what was looked at. `full NAME MS`, `hold NAME MS`:
 * servers whose queue is full. `blocking`: connects of TCP. TYPE: stream, seqpacket, dgram.
 */
export const SOCKETS = String.raw`
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static int type_of(const char *word) {
  return strcmp(word, "stream") == 0 ? SOCK_STREAM : strcmp(word, "seqpacket") == 0 ? SOCK_SEQPACKET : SOCK_DGRAM;
}

static struct sockaddr_un name_of(const char *path) {
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  strncpy(name.sun_path, path, sizeof name.sun_path - 1);
  return name;
}

static int say(int result) {
  if (result < 0) printf("%d\n", errno);
  else printf("ok\n");
  return 0;
}

static int serve(int type, const char *path, int netns) {
  char byte[64];
  struct sockaddr_un name = name_of(path);
  if (netns && unshare(getuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET) < 0) return say(-1);
  int fd = socket(AF_UNIX, type, 0);
  if (bind(fd, (struct sockaddr *)&name, sizeof name) < 0) return say(-1);
  if (type != SOCK_DGRAM && listen(fd, 4) < 0) return say(-1);
  printf("up\n");
  fflush(stdout);
  for (;;) {
    if (type == SOCK_DGRAM) {
      if (recv(fd, byte, sizeof byte, 0) < 0) return 1;
    } else {
      int one = accept(fd, NULL, NULL);
      if (one < 0) return 1;
      close(one);
    }
    printf("came\n");
    fflush(stdout);
  }
}

static int dial(int type, const char *path, const char *how) {
  struct sockaddr_un name = name_of(path);
  struct iovec part = {"hello", 5};
  struct msghdr message = {.msg_name = &name, .msg_namelen = sizeof name, .msg_iov = &part, .msg_iovlen = 1};
  int fd = socket(AF_UNIX, type, 0);
  if (fd < 0) return say(fd);
  if (strcmp(how, "sendto") == 0) return say((int)sendto(fd, "hello", 5, 0, (struct sockaddr *)&name, sizeof name));
  if (strcmp(how, "sendmsg") == 0) return say((int)sendmsg(fd, &message, 0));
  if (strcmp(how, "nonblock") == 0) fcntl(fd, F_SETFL, O_NONBLOCK);
  int result = connect(fd, (struct sockaddr *)&name, sizeof name);
  if (result == 0 && type == SOCK_DGRAM) result = (int)send(fd, "hello", 5, 0);
  return say(result);
}

static volatile struct sockaddr_un swapped;
static char names[2][108];
static int sockets[4];
static int slot;

static void *swap_names(void *unused) {
  for (unsigned i = 0;; i++) memcpy((void *)swapped.sun_path, names[i % 2], sizeof names[0]);
  return unused;
}

static void *swap_sockets(void *unused) {
  for (unsigned i = 0;; i++) dup2(sockets[i % 2], slot);
  return unused;
}

static void *swap_families(void *unused) {
  for (unsigned i = 0;; i++) swapped.sun_family = i % 2 ? AF_UNIX : AF_INET;
  return unused;
}

static void *unblock(void *unused) {
  for (unsigned i = 0;; i++) fcntl(slot, F_SETFL, i % 2 ? O_NONBLOCK : 0);
  return unused;
}

static void *take(void *listener) {
  for (;;) {
    int one = accept(*(int *)listener, NULL, NULL);
    if (one >= 0) close(one);
  }
}

/* Prints how many connects came through to our own server. */
static int race(const char *path, int ms) {
  struct sockaddr_un own = name_of("./own-race.sock");
  struct timespec start, now;
  pthread_t thread;
  int listener = socket(AF_UNIX, SOCK_STREAM, 0), done = 0;
  unlink(own.sun_path);
  if (bind(listener, (struct sockaddr *)&own, sizeof own) < 0 || listen(listener, 8) < 0) return say(-1);
  memcpy(names[0], own.sun_path, sizeof names[0]);
  strncpy(names[1], path, sizeof names[1] - 1);
  slot = 100;
  pthread_create(&thread, NULL, take, &listener);
  pthread_create(&thread, NULL, swap_names, NULL);
  pthread_create(&thread, NULL, swap_families, NULL);
  sockets[0] = socket(AF_INET, SOCK_STREAM, 0);
  sockets[1] = socket(AF_UNIX, SOCK_STREAM, 0);
  pthread_create(&thread, NULL, swap_sockets, NULL);
  pthread_create(&thread, NULL, unblock, NULL);
  clock_gettime(CLOCK_MONOTONIC, &start);
  do {
    if (connect(slot, (struct sockaddr *)&swapped, sizeof swapped) == 0) done++;
    int fresh = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(fresh, (struct sockaddr *)&swapped, sizeof swapped) == 0) done++;
    close(fresh);
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < ms);
  printf("%s\n", done > 0 ? "own" : "none");
  fflush(stdout);
  _exit(0);
}

static int listening(const char *path, int queue) {
  struct sockaddr_un name = name_of(path);
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  unlink(path);
  if (bind(fd, (struct sockaddr *)&name, sizeof name) < 0 || listen(fd, queue) < 0) exit(say(-1));
  return fd;
}

/* Fills the queue of a server, leaves it to another process, which takes what waits after some time, and ends. */
static int full(const char *path, int ms) {
  struct sockaddr_un name = name_of(path);
  int fd = listening(path, 1), last;
  do {
    last = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
  } while (connect(last, (struct sockaddr *)&name, sizeof name) == 0);
  if (fork() != 0) return 0;
  usleep((useconds_t)ms * 1000);
  for (int i = 0; i < 8; i++) accept(fd, NULL, NULL);
  return 0;
}

static void *connect_slot(void *name) {
  connect(slot, name, sizeof(struct sockaddr_un));
  return NULL;
}

/* Blocking connects to a server that takes nothing, while others switch O_NONBLOCK off. */
static int hold(const char *path, int ms) {
  struct sockaddr_un name = name_of(path);
  pthread_t thread;
  listening(path, 0);
  slot = 100;
  dup2(socket(AF_UNIX, SOCK_STREAM, 0), slot);
  pthread_create(&thread, NULL, unblock, NULL);
  pthread_create(&thread, NULL, unblock, NULL);
  for (int i = 0; i < 20; i++) {
    pthread_create(&thread, NULL, connect_slot, &name);
    usleep((useconds_t)ms * 50);
    dup2(socket(AF_UNIX, SOCK_STREAM, 0), slot);
  }
  printf("held\n");
  fflush(stdout);
  _exit(0);
}

/* A blocking connect of TCP to a port that is listened on, and to one that is not. */
static int blocking(void) {
  struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof name;
  int server = socket(AF_INET, SOCK_STREAM, 0), one = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(server, (struct sockaddr *)&name, sizeof name) < 0 || listen(server, 4) < 0) return say(-1);
  getsockname(server, (struct sockaddr *)&name, &length);
  if (connect(one, (struct sockaddr *)&name, sizeof name) < 0 || (fcntl(one, F_GETFL) & O_NONBLOCK) != 0) return say(-1);
  if (connect(one, (struct sockaddr *)&name, sizeof name) == 0 || errno != EISCONN) return say(-1);
  close(server);
  printf("ok ");
  return say(connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&name, sizeof name));
}

int main(int count, char **words) {
  char path[108];
  if (count < 4) return 2;
  if (strcmp(words[1], "listen") == 0) return serve(type_of(words[2]), words[3], count > 4);
  if (strcmp(words[1], "race") == 0) return race(words[2], atoi(words[3]));
  if (strcmp(words[1], "full") == 0) return full(words[2], atoi(words[3]));
  if (strcmp(words[1], "hold") == 0) return hold(words[2], atoi(words[3]));
  if (strcmp(words[1], "blocking") == 0) return blocking();
  if (strcmp(words[1], "at") == 0) {
    int folder = open(words[3], O_PATH | O_DIRECTORY);
    snprintf(path, sizeof path, "/proc/self/fd/%d/%s", folder, words[4]);
    return dial(type_of(words[2]), path, "connect");
  }
  return dial(type_of(words[2]), words[3], words[4]);
}
`;

/** One `listen` that runs on the host. */
export class HostListener {
  came = 0;
  readonly #process: ChildProcess;

  private constructor(process: ChildProcess) {
    this.#process = process;
  }

  static async start(
    actor: Actor,
    cwd: string,
    program: string,
    words: readonly string[],
  ): Promise<HostListener> {
    const child = spawnAs(actor, [program, "listen", ...words], {
      cwd,
      stdio: ["ignore", "pipe", "inherit"],
    });
    const listener = new HostListener(child);
    await new Promise<void>((resolve, reject) => {
      child.once("exit", () => reject(new Error(`The socket '${words.join(" ")}' was not made`)));
      child.stdout?.on("data", (bytes: Buffer) => {
        if (bytes.toString().includes("up")) resolve();
        listener.came += bytes.toString().split("came").length - 1;
      });
    });
    return listener;
  }

  close(): void {
    this.#process.removeAllListeners("exit");
    this.#process.kill("SIGKILL");
  }
}
