#define _GNU_SOURCE
#include "notify/connects/refused_addresses.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/channel.h"
#include "lib/commands.h"
#include "lib/fields.h"
#include "lib/frames.h"

#define STATE_ESTABLISHED 1

static const uint8_t MAPPED[12] = {[10] = 0xff, [11] = 0xff};

static bool read_address(const struct dial_address *given, struct refused_address *found) {
  *found = (struct refused_address){.port = 0};
  if (given->name.ss_family == AF_INET && given->length >= sizeof(struct sockaddr_in)) {
    const struct sockaddr_in *in = (const struct sockaddr_in *)&given->name;
    memcpy(found->address, MAPPED, sizeof MAPPED);
    memcpy(found->address + sizeof MAPPED, &in->sin_addr, sizeof in->sin_addr);
    found->port = ntohs(in->sin_port);
  } else if (given->name.ss_family == AF_INET6 && given->length >= sizeof(struct sockaddr_in6)) {
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&given->name;
    memcpy(found->address, &in6->sin6_addr, sizeof in6->sin6_addr);
    found->port = ntohs(in6->sin6_port);
  }
  return found->port != 0;
}

static bool is_refusal(int error) {
  return error == ECONNREFUSED || error == EINPROGRESS || error == ENETUNREACH || error == EHOSTUNREACH ||
         error == EADDRNOTAVAIL || error == EACCES || error == EPERM;
}

/* Every address is local to a world: a connection that the gateway takes is made when connect(2) returns, although the call
   of a non-blocking socket says EINPROGRESS. One that is not is refused, or soon will be; the broker asks its rules. */
static bool is_refused(int socket, int error) {
  int kind = 0;
  struct tcp_info info = {0};
  socklen_t length = sizeof kind;
  if (getsockopt(socket, SOL_SOCKET, SO_PROTOCOL, &kind, &length) < 0 || kind != IPPROTO_TCP) return false;
  if (error != EINPROGRESS) return true;
  length = sizeof info;
  return getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 && info.tcpi_state != STATE_ESTABLISHED;
}

static bool is_new(const struct refused_addresses *told, const struct refused_address *found) {
  for (unsigned i = 0; i < told->count; i++) {
    if (memcmp(&told->list[i], found, sizeof *found) == 0) return false;
  }
  return told->count < REFUSED_ADDRESSES_MAX;
}

static void tell(uint32_t id, const struct refused_address *found) {
  char text[INET6_ADDRSTRLEN];
  uint8_t payload[2 * FIELD_HEADER_SIZE + sizeof text + 8];
  struct field_writer writer = {.data = payload, .capacity = sizeof payload};
  bool four = memcmp(found->address, MAPPED, sizeof MAPPED) == 0;
  if (inet_ntop(four ? AF_INET : AF_INET6, found->address + (four ? sizeof MAPPED : 0), text, sizeof text) == NULL) return;
  field_put_string(&writer, TAG_ADDRESS, text);
  field_put_u64(&writer, TAG_PORT, found->port);
  channel_send(FRAME_REFUSED_ADDRESS, id, payload, writer.length);
}

void refused_addresses_note(uint32_t id, int socket, const struct dial_address *address, int error) {
  struct refused_address found;
  if (!is_refusal(error) || !read_address(address, &found) || !is_refused(socket, error)) return;
  struct command *command = command_find(id);
  struct refused_addresses *told = command == NULL ? NULL : &command->refused_addresses;
  if (told == NULL || !is_new(told, &found)) return;
  told->list[told->count++] = found;
  tell(id, &found);
}
