#define _GNU_SOURCE
#include "notify/connects/closed_ports.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/frames.h"
#include "notify/connects/refused_addresses.h"

/* States of tcp_info (net/tcp_states.h is the kernel's own). */
#define STATE_ESTABLISHED 1
#define STATE_CLOSE 7

static bool is_loopback4(uint32_t address) {
  return address == INADDR_ANY || address >> 24 == IN_LOOPBACKNET;
}

/* Returns the port if the address is the world's own localhost (0.0.0.0 and :: lead there too), 0 if not. */
static uint16_t own_port(const struct dial_address *address) {
  if (address->name.ss_family == AF_INET && address->length >= sizeof(struct sockaddr_in)) {
    const struct sockaddr_in *in = (const struct sockaddr_in *)&address->name;
    return is_loopback4(ntohl(in->sin_addr.s_addr)) ? ntohs(in->sin_port) : 0;
  }
  if (address->name.ss_family != AF_INET6 || address->length < sizeof(struct sockaddr_in6)) return 0;
  const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&address->name;
  const struct in6_addr *to = &in6->sin6_addr;
  uint32_t mapped;
  memcpy(&mapped, &to->s6_addr[12], sizeof mapped);
  bool own = IN6_IS_ADDR_LOOPBACK(to) || IN6_IS_ADDR_UNSPECIFIED(to) ||
             (IN6_IS_ADDR_V4MAPPED(to) && is_loopback4(ntohl(mapped)));
  return own ? ntohs(in6->sin6_port) : 0;
}

static uint16_t *find(struct closed_ports *ports, uint16_t port) {
  for (unsigned i = 0; i < ports->count; i++) {
    if (ports->list[i] == port) return &ports->list[i];
  }
  return NULL;
}

/* On loopback the answer has arrived when connect(2) returns, so the socket's state tells it where the call of a
   non-blocking socket says EINPROGRESS. SO_ERROR would take the error from the caller. */
void closed_ports_note(uint32_t id, int socket, const struct dial_address *address, int error) {
  uint16_t port = own_port(address);
  if (port == 0) return refused_addresses_note(id, socket, address, error);
  struct command *command = command_find(id);
  if (command == NULL || (error != 0 && error != ECONNREFUSED && error != EINPROGRESS)) return;
  struct tcp_info info = {0};
  socklen_t length = sizeof info;
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) < 0) return;
  struct closed_ports *ports = &command->closed_ports;
  uint16_t *known = find(ports, port);
  if (known != NULL && info.tcpi_state == STATE_ESTABLISHED) *known = ports->list[--ports->count];
  if (known == NULL && info.tcpi_state == STATE_CLOSE && ports->count < CLOSED_PORTS_MAX)
    ports->list[ports->count++] = port;
}

void closed_ports_put(const struct closed_ports *ports, struct field_writer *writer) {
  for (unsigned i = 0; i < ports->count; i++) field_put_u64(writer, TAG_CLOSED_PORT, ports->list[i]);
}
