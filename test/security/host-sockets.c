/* The services of a host at the places where such services listen, and who tries to reach them.

     serve ABSTRACT PATH…   a stream socket at each PATH and a datagram socket at PATH.dgram, and two abstract ones: says `up`,
                            and `came` for each who came. Replaces nothing; ends, and removes all it made, when its standard
                            input closes: also when whoever started it was killed.
     dial ABSTRACT PATH…    tries the same list and says how many answered
     own                    passes a descriptor to itself over a pair, a socket with a name and an abstract one */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define SOCKETS_MAX 64
#define MADE_MAX 256

static const int KINDS[] = {SOCK_STREAM, SOCK_DGRAM};
static const char *const ENDS[] = {"", ".dgram"};

struct made {
  char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
  bool folder;
};
static struct made made[MADE_MAX];
static int made_count;

static void remember(const char *path, bool folder) {
  if (made_count == MADE_MAX) errx(1, "more than %d files", MADE_MAX);
  snprintf(made[made_count].path, sizeof made->path, "%s", path);
  made[made_count++].folder = folder;
}

/* The last first: a folder is empty once what was made in it is gone. Somebody else's files keep theirs. */
static void remove_all(void) {
  while (made_count > 0) {
    struct made *last = &made[--made_count];
    if ((last->folder ? rmdir(last->path) : unlink(last->path)) < 0) warn("'%s' stays", last->path);
  }
}

static socklen_t address(struct sockaddr_un *to, const char *name, const char *end, bool abstract) {
  memset(to, 0, sizeof *to);
  to->sun_family = AF_UNIX;
  int length = snprintf(to->sun_path + abstract, sizeof to->sun_path - abstract, "%s%s", name, end);
  if (length < 0 || (size_t)length >= sizeof to->sun_path - abstract) errx(1, "'%s' is too long for a socket", name);
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)length + 1);
}

static void make_folders(const char *path) {
  char folder[sizeof made->path];
  for (const char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    if (mkdir(folder, 0755) == 0)
      remember(folder, true);
    else if (errno != EEXIST)
      err(1, "%s", folder);
  }
}

static int listen_at(int kind, const char *name, const char *end, bool abstract) {
  struct sockaddr_un at;
  socklen_t size = address(&at, name, end, abstract);
  int fd = socket(AF_UNIX, kind | SOCK_CLOEXEC, 0);
  if (fd < 0) err(1, "socket");
  int bound = bind(fd, (struct sockaddr *)&at, size);
  /* Another test may have made the same folder, and removes it once it is empty. */
  for (int tries = 0; bound < 0 && errno == ENOENT && tries < 10; tries++) {
    make_folders(name);
    bound = bind(fd, (struct sockaddr *)&at, size);
  }
  if (bound < 0) err(1, "bind '%s%s'", name, end);
  if (!abstract) {
    remember(at.sun_path, false);
    if (chmod(at.sun_path, 0777) < 0) err(1, "chmod '%s'", at.sun_path);
  }
  if (kind == SOCK_STREAM && listen(fd, 8) < 0) err(1, "listen '%s'", name);
  return fd;
}

static void greet(int fd) {
  char bytes[64];
  int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
  if (client >= 0)
    close(client);
  else
    (void)!recv(fd, bytes, sizeof bytes, 0);
  puts("came");
  fflush(stdout);
}

static void serve(int count, char **names) {
  struct pollfd watched[SOCKETS_MAX] = {{.fd = STDIN_FILENO, .events = POLLIN}};
  int sockets = 1;
  if (1 + 2 * count > SOCKETS_MAX) errx(1, "more than %d sockets", SOCKETS_MAX);
  /* What is killed together with its terminal or its parent leaves everything: it has a session of its own. */
  (void)setsid();
  signal(SIGPIPE, SIG_IGN);
  atexit(remove_all);
  for (int at = 0; at < count; at++) {
    if (at > 0) make_folders(names[at]);
    for (int kind = 0; kind < 2; kind++)
      watched[sockets++] = (struct pollfd){.fd = listen_at(KINDS[kind], names[at], ENDS[kind], at == 0), .events = POLLIN};
  }
  puts("up");
  fflush(stdout);
  for (;;) {
    char byte;
    if (poll(watched, (nfds_t)sockets, -1) < 0 && errno != EINTR) err(1, "poll");
    if (watched[0].revents != 0 && read(STDIN_FILENO, &byte, 1) <= 0) exit(0);
    for (int at = 1; at < sockets; at++)
      if (watched[at].revents != 0) greet(watched[at].fd);
  }
}

static bool reaches(int kind, const char *name, const char *end, bool abstract) {
  struct sockaddr_un to;
  socklen_t size = address(&to, name, end, abstract);
  int fd = socket(AF_UNIX, kind | SOCK_CLOEXEC, 0);
  if (fd < 0) err(1, "socket");
  bool reached = connect(fd, (struct sockaddr *)&to, size) == 0;
  /* A service that hangs up at once was reached too. */
  if (reached && send(fd, "hello", 5, MSG_NOSIGNAL) < 0 && errno != EPIPE) reached = false;
  close(fd);
  return reached;
}

static void dial(int count, char **names) {
  int reached = 0;
  for (int at = 0; at < count; at++)
    for (int kind = 0; kind < 2; kind++) reached += reaches(KINDS[kind], names[at], ENDS[kind], at == 0);
  printf("%d\n", reached);
}

static void pass(int from, int to) {
  char byte = 'x', text[9] = "", space[CMSG_SPACE(sizeof(int))] = {0};
  struct iovec part = {&byte, 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
  struct cmsghdr *head = CMSG_FIRSTHDR(&message);
  int ends[2], got;
  if (from < 0 || to < 0) err(1, "connect");
  if (pipe2(ends, O_CLOEXEC) < 0) err(1, "pipe");
  head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(head), &ends[0], sizeof(int));
  if (sendmsg(from, &message, 0) != 1 || recvmsg(to, &message, MSG_CMSG_CLOEXEC) != 1) err(1, "a descriptor does not pass");
  memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
  if (write(ends[1], "own ", 4) != 4 || read(got, text, sizeof text - 1) != 4) err(1, "the descriptor does not work");
  fputs(text, stdout);
}

static void own(void) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) err(1, "socketpair");
  pass(pair[0], pair[1]);
  for (int abstract = 0; abstract < 2; abstract++) {
    struct sockaddr_un at;
    socklen_t size = address(&at, "own.sock", "", abstract);
    int server = listen_at(SOCK_STREAM, "own.sock", "", abstract);
    int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (client < 0 || connect(client, (struct sockaddr *)&at, size) < 0) err(1, "connect");
    pass(client, accept4(server, NULL, NULL, SOCK_CLOEXEC));
  }
  remove_all();
  puts("");
}

int main(int count, char **words) {
  if (count > 2 && strcmp(words[1], "serve") == 0)
    serve(count - 2, words + 2);
  else if (count > 2 && strcmp(words[1], "dial") == 0)
    dial(count - 2, words + 2);
  else if (count == 2 && strcmp(words[1], "own") == 0)
    own();
  else
    errx(2, "usage: serve ABSTRACT PATH… | dial ABSTRACT PATH… | own");
  return 0;
}
