#define _GNU_SOURCE
#include "notify/connects/listens.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/callers.h"
#include "notify/connects/dial_calls.h"
#include "notify/connects/dial_parts.h"
#include "notify/connects/dials.h"
#include "notify/connects/own_sockets.h"
#include "notify/notices.h"

#define PATH_AT offsetof(struct sockaddr_un, sun_path)

/* An unbound socket is refused here: another thread could bind it to an abstract name before the call. */
static int listen_unix(int socket, const struct sockaddr_un *name, socklen_t length, int backlog) {
  if (length <= PATH_AT) return EINVAL;
  if (name->sun_path[0] == 0) return EPERM;
  if (listen(socket, backlog) < 0) return errno;
  own_sockets_add(socket);
  return 0;
}

static int listen_as(int socket, int backlog) {
  union {
    struct sockaddr_storage any;
    struct sockaddr_un local;
  } name = {.any = {.ss_family = AF_UNSPEC}};
  socklen_t length = sizeof name;
  if (getsockname(socket, (struct sockaddr *)&name, &length) < 0) return errno;
  if (name.any.ss_family == AF_UNIX) return listen_unix(socket, &name.local, length, backlog);
  return listen(socket, backlog) < 0 ? errno : 0;
}

bool listen_serve(int listener, const struct seccomp_notif *notice, struct command *command) {
  if (!own_sockets_beside_hosts() || !dial_is_own_call(&notice->data) || notice->data.nr != SYS_listen) return false;
  int socket = dial_socket((pid_t)notice->pid, (int)notice->data.args[0]);
  int error = socket >= 0 ? 0 : errno == ESRCH || errno == EMFILE || errno == ENFILE ? EAGAIN : errno;
  /* After the caller's death its pid may belong to another process. */
  bool waits = notice_waits(listener, notice->id);
  if (waits && socket >= 0) error = listen_as(socket, (int)notice->data.args[1]);
  if (socket >= 0) dial_close(socket);
  if (!waits) return true;
  if (error == EPERM) dial_tell_refused(command, "@ (listen)");
  notice_return(listener, notice->id, 0, error);
  return true;
}
