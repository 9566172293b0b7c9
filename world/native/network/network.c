#define _GNU_SOURCE
#include "network/network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "network/network_rules.h"
#include "network/network_sockets.h"
#include "network/network_space.h"
#include "network/node_channel.h"

/* Without nft each port needs its own listener. */
#define PORTS_MAX 64
#define COMPLAINT_MAX 1024
/* Connections accepted before the broker's next request is read. */
#define ACCEPTS 64
#define HANDLE_ANSWER "{\"cmd\":\"NODE_HANDLE_"

static int listeners[1 + PORTS_MAX];
static int listener_count;
static bool redirected; /* the rules redirect connections to the first listener */

_Noreturn static void fail(const char *step) {
  node_send(-1, "{\"failed\":{\"step\":\"%s\",\"errno\":%d}}", step, errno);
  _exit(1);
}

static int must(int fd, const char *step) {
  if (fd < 0) fail(step);
  return fd;
}

/* Closes with a reset, so that the caller sees a failed connection instead of an end of file. */
static void reset(int fd) {
  struct linger linger = {.l_onoff = 1};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
  close(fd);
}

/* True for the world's own localhost, never the host's, whatever a policy says of 127.0.0.0/8. The rules do
   not redirect localhost, but listeners of single ports accept there too. */
static bool is_own(const struct sockaddr_in *destination) {
  return ntohl(destination->sin_addr.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
}

static void hand_over(int fd, const struct sockaddr_in *source) {
  char address[INET_ADDRSTRLEN];
  struct sockaddr_in destination;
  if (!network_destination(fd, redirected, &destination) || is_own(&destination)) return reset(fd);
  uint64_t inode = network_inode(source, &destination);
  inet_ntop(AF_INET, &destination.sin_addr, address, sizeof address);
  node_send(fd,
            "{\"cmd\":\"NODE_HANDLE\",\"type\":\"net.Socket\",\"msg\":{\"to\":\"%s\",\"port\":%u,\"inode\":%llu}}",
            address, ntohs(destination.sin_port), (unsigned long long)inode);
  close(fd);
}

/* Returns true when more connections may wait. */
static bool accept_some(int listener) {
  for (int i = 0; i < ACCEPTS; i++) {
    struct sockaddr_in source;
    socklen_t length = sizeof source;
    int fd = accept4(listener, (struct sockaddr *)&source, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) hand_over(fd, &source);
    else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) usleep(2000);
    else if (errno == EAGAIN) return false;
  }
  return true;
}

static void apply_rules(const char *nft, const char *text) {
  char complaint[COMPLAINT_MAX] = "";
  if (!network_rules_apply(nft, text, complaint, sizeof complaint)) {
    node_send(-1, "{\"rules\":\"%s\"}", complaint[0] == 0 ? "nft cannot be started" : complaint);
    return;
  }
  redirected = true;
  node_send(-1, "{\"rules\":\"\"}");
}

/* Replaces the listeners of single ports: `80,443`. */
static void listen_on(char *ports) {
  while (listener_count > 1) close(listeners[--listener_count]);
  for (char *port = strtok(ports, ","); port != NULL; port = strtok(NULL, ",")) {
    int fd = listener_count > PORTS_MAX ? -1 : network_listen(INADDR_ANY, (uint16_t)strtoul(port, NULL, 10));
    if (fd < 0) {
      node_send(-1, "{\"rules\":\"port %u: errno %d\"}", (unsigned)strtoul(port, NULL, 10), errno);
      return;
    }
    listeners[listener_count++] = fd;
  }
  node_send(-1, "{\"rules\":\"\"}");
}

/* Connects inside the world. Order `NUMBER PORT`; the answer repeats the number. */
static void connect_inside(const char *order) {
  char *rest;
  unsigned long number = strtoul(order, &rest, 10);
  int fd = network_connect((uint16_t)strtoul(rest, NULL, 10));
  if (fd < 0) {
    node_send(-1, "{\"refused\":%lu,\"errno\":%d}", number, errno);
    return;
  }
  node_send(fd, "{\"cmd\":\"NODE_HANDLE\",\"type\":\"net.Socket\",\"msg\":{\"connected\":%lu}}", number);
  close(fd);
}

/* Hands over what waits on every listener. Bounded, because programs may go on connecting. */
static void flush(void) {
  for (int i = 0; i < listener_count; i++) {
    for (int round = 0; round <= NETWORK_BACKLOG / ACCEPTS && accept_some(listeners[i]); round++) continue;
  }
  node_send(-1, "{\"flushed\":1}");
}

static void obey(const char *nft) {
  char *line;
  char *value;
  node_receive();
  while ((line = node_next_line()) != NULL) {
    if ((value = node_value(line, "rules")) != NULL) apply_rules(nft, value);
    else if ((value = node_value(line, "listen")) != NULL) listen_on(value);
    else if ((value = node_value(line, "connect")) != NULL) connect_inside(value);
    else if (node_value(line, "flush") != NULL) flush();
    /* Node acknowledges each socket, or reports a lack of descriptors: the connection was then reset by
       Node. */
    else if (strncmp(line, HANDLE_ANSWER, strlen(HANDLE_ANSWER)) != 0) _exit(1);
  }
}

static void hand_over_dns(void) {
  int udp = must(network_dns(SOCK_DGRAM), "dns socket");
  int tcp = must(network_dns(SOCK_STREAM), "dns socket");
  node_send(udp, "{\"cmd\":\"NODE_HANDLE\",\"type\":\"dgram.Socket\",\"dgramType\":\"udp4\",\"msg\":{\"dns\":\"udp\"}}");
  node_send(tcp, "{\"cmd\":\"NODE_HANDLE\",\"type\":\"net.Server\",\"msg\":{\"dns\":\"tcp\"}}");
  close(udp);
  close(tcp);
}

void network_run(const char *nft) {
  bool nested;
  node_open();
  signal(SIGPIPE, SIG_IGN);
  const char *wrong = network_space_make(&nested);
  if (wrong == NULL) wrong = network_space_settle();
  if (wrong != NULL) fail(wrong);
  /* Processes that join the namespaces open them through this process's procfs folder, closed since the
     change of credentials. */
  if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0) fail("dumpable");
  listeners[listener_count++] = must(network_listen(INADDR_LOOPBACK, 0), "listener");
  hand_over_dns();
  node_send(-1, "{\"ready\":%u}", network_port(listeners[0]));
  for (;;) {
    struct pollfd states[2 + PORTS_MAX] = {{.fd = NODE_CHANNEL_FD, .events = POLLIN}};
    int count = listener_count;
    for (int i = 0; i < count; i++) states[i + 1] = (struct pollfd){.fd = listeners[i], .events = POLLIN};
    if (poll(states, (nfds_t)count + 1, -1) < 0) continue;
    for (int i = 0; i < count; i++) {
      if (states[i + 1].revents != 0) accept_some(listeners[i]);
    }
    if (states[0].revents != 0) obey(nft);
  }
}
